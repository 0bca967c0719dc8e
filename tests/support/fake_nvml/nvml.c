/* A driver library without a driver: answers what the script in $REVEAL_FAKE_NVML says.
 *
 * The script is lines "key value"; it is read again whenever the file changes.  Keys of a GPU
 * begin with its index ("0.temperature 61"), those of its MIG instance n with "0.mig.n.".  A
 * figure without a key is not supported.  A value may be a list: "step_ms" is how long each
 * entry lasts from nvmlInit on, or "at" says which one holds now; the entry "?" is an error.
 *   call.FUNCTION CODE        the call fails; "0.call.FUNCTION" on one GPU, "0.call.*" all of it
 *   delay.FUNCTION MICROSECONDS
 *   0.field.ID[.SCOPE] VALUE  a field; 0.gpm.ID a GPM figure
 *   0.field_delay.ID MICROSECONDS
 *   0.process.K PID BYTES c|g and 0.busy.K PID TIMESTAMP SM; K from 0 on
 *   xid.K GPU CODE            an event, each told once
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { OK = 0, INVALID = 2, UNSUPPORTED = 3, NOT_FOUND = 6, TOO_SMALL = 7, TIMEOUT = 10,
       NO_LIBRARY = 12 };
enum { GPUS = 16, PARTS = 8, ENTRIES = 8192 };

typedef struct { int gpu, part; } Device;
typedef struct { char *key, *value; } Entry;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Entry entries[ENTRIES];
static int count;
static char *text;
static struct timespec changed, began;
static ino_t inode;
static int told;
static Device devices[GPUS][PARTS + 1];

static int by_key(const void *one, const void *other) {
    return strcmp(((const Entry *)one)->key, ((const Entry *)other)->key);
}

static void load(void) {
    const char *path = getenv("REVEAL_FAKE_NVML");
    struct stat now;
    if (!path || stat(path, &now)) { count = 0; inode = 0; return; }
    if (now.st_ino == inode && now.st_mtim.tv_sec == changed.tv_sec &&
        now.st_mtim.tv_nsec == changed.tv_nsec) return;
    FILE *file = fopen(path, "r");
    if (!file) return;
    free(text);
    text = calloc(1, now.st_size + 1);
    if (fread(text, 1, now.st_size, file) != (size_t)now.st_size) text[0] = 0;
    fclose(file);
    changed = now.st_mtim;
    inode = now.st_ino;
    count = 0;
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line && count < ENTRIES;
         line = strtok_r(NULL, "\n", &save)) {
        char *blank = strchr(line, ' ');
        if (!blank || *line == '#') continue;
        *blank = 0;
        entries[count++] = (Entry){line, blank + 1};
    }
    qsort(entries, count, sizeof *entries, by_key);
}

static const char *raw(const char *key) {
    Entry wanted = {(char *)key, NULL};
    Entry *found = bsearch(&wanted, entries, count, sizeof *entries, by_key);
    return found ? found->value : NULL;
}

static long number(const char *key, long otherwise) {
    const char *found = raw(key);
    return found ? strtol(found, NULL, 0) : otherwise;
}

static const char *of(const Device *device, const char *name) {
    char key[160];
    if (device->part < 0) snprintf(key, sizeof key, "%d.%s", device->gpu, name);
    else snprintf(key, sizeof key, "%d.mig.%d.%s", device->gpu, device->part, name);
    return raw(key);
}

/* which entry of a list holds now */
static long place(void) {
    long step = number("step_ms", 0);
    if (!step) return number("at", 0);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((now.tv_sec - began.tv_sec) * 1000 + (now.tv_nsec - began.tv_nsec) / 1000000) / step;
}

static int value(const Device *device, const char *name, unsigned long long *out) {
    const char *list = of(device, name);
    if (!list) return UNSUPPORTED;
    for (long left = place(); left > 0; left--) {
        const char *next = strchr(list, ' ');
        if (!next) break; /* the last entry lasts */
        list = next + 1;
    }
    if (*list == '?') return 999;
    char *end;
    *out = strtoull(list, &end, 0);
    return end == list ? INVALID : OK;
}

/* take so many microseconds, in which others may call; the lock is held before and after */
static void last(long delay) {
    if (!delay) return;
    pthread_mutex_unlock(&lock);
    struct timespec pause = {delay / 1000000, delay % 1000000 * 1000};
    nanosleep(&pause, NULL);
    pthread_mutex_lock(&lock);
}

/* begin a call: the script, its delay, its error; the lock is held on return */
static int enter(const char *function, const Device *device) {
    char key[160];
    pthread_mutex_lock(&lock);
    load();
    snprintf(key, sizeof key, "delay.%s", function);
    long delay = number(key, 0);
    if (device && of(device, key)) delay = strtol(of(device, key), NULL, 0);
    last(delay);
    snprintf(key, sizeof key, "call.%s", function);
    if (raw(key)) return (int)number(key, 0);
    if (!device) return OK;
    const char *code = of(device, key);
    if (!code) code = of(device, "call.*");
    if (!code && device->part >= 0) code = of(&devices[device->gpu][0], "call.*");
    return code ? atoi(code) : OK;
}

static int leave(int code) {
    pthread_mutex_unlock(&lock);
    return code;
}

#define ENTER(device) do { int code_ = enter(__func__, device); if (code_) return leave(code_); } while (0)

static int one(const char *function, const Device *device, const char *name, unsigned *out) {
    unsigned long long found = 0;
    int code = enter(function, device);
    if (!code) code = value(device, name, &found);
    if (!code) *out = (unsigned)found;
    return leave(code);
}

static int string(const Device *device, const char *name, char *out, unsigned size) {
    const char *found = of(device, name);
    if (!found) return UNSUPPORTED;
    snprintf(out, size, "%s", found);
    return OK;
}

#define FIGURE(function, name) \
    int function(Device *device, unsigned *out) { return one(#function, device, name, out); }
#define SELECTED(function, name) \
    int function(Device *device, int which, unsigned *out) { \
        char key[80]; \
        snprintf(key, sizeof key, name ".%d", which); \
        return one(#function, device, key, out); \
    }

FIGURE(nvmlDeviceGetPowerUsage, "power")
FIGURE(nvmlDeviceGetEnforcedPowerLimit, "power.limit")
FIGURE(nvmlDeviceGetPcieReplayCounter, "pcie.replays")
FIGURE(nvmlDeviceGetPersistenceMode, "persistence")
FIGURE(nvmlDeviceGetFanSpeed, "fan")
FIGURE(nvmlDeviceGetPerformanceState, "performance_state")
FIGURE(nvmlDeviceGetCurrPcieLinkGeneration, "pcie.generation")
FIGURE(nvmlDeviceGetCurrPcieLinkWidth, "pcie.width")
FIGURE(nvmlDeviceGetMaxPcieLinkGeneration, "pcie.generation_maximum")
FIGURE(nvmlDeviceGetMaxPcieLinkWidth, "pcie.width_maximum")
FIGURE(nvmlDeviceGetGpuInstanceId, "gpu_instance")
FIGURE(nvmlDeviceGetComputeInstanceId, "compute_instance")
SELECTED(nvmlDeviceGetClockInfo, "clock")
SELECTED(nvmlDeviceGetMaxClockInfo, "clock_maximum")
SELECTED(nvmlDeviceGetTemperature, "temperature")
SELECTED(nvmlDeviceGetTemperatureThreshold, "threshold")
SELECTED(nvmlDeviceGetPcieThroughput, "pcie.bytes")
SELECTED(nvmlDeviceGetNvLinkState, "nvlink")

const char *nvmlErrorString(int code) {
    static __thread char said[32];
    snprintf(said, sizeof said, "error %d", code);
    return said;
}

int nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    if (!getenv("REVEAL_FAKE_NVML")) return NO_LIBRARY;
    ENTER(NULL);
    clock_gettime(CLOCK_MONOTONIC, &began);
    for (int gpu = 0; gpu < GPUS; gpu++)
        for (int part = 0; part <= PARTS; part++) devices[gpu][part] = (Device){gpu, part - 1};
    return leave(OK);
}

int nvmlShutdown(void) {
    ENTER(NULL);
    return leave(OK);
}

int nvmlDeviceGetCount_v2(unsigned *out) {
    ENTER(NULL);
    *out = (unsigned)number("gpus", 0);
    return leave(OK);
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **out) {
    if (index >= GPUS) return INVALID;
    ENTER(&devices[index][0]);
    *out = &devices[index][0];
    return leave(OK);
}

int nvmlDeviceGetUUID(Device *device, char *out, unsigned size) {
    ENTER(device);
    return leave(string(device, "uuid", out, size));
}

int nvmlDeviceGetName(Device *device, char *out, unsigned size) {
    ENTER(device);
    return leave(string(device, "name", out, size));
}

int nvmlDeviceGetPciInfo_v3(Device *device, void *out) {
    struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } *info = out;
    ENTER(device);
    return leave(string(device, "bus", info->bus_id, sizeof info->bus_id));
}

int nvmlDeviceGetMigMode(Device *device, unsigned *current, unsigned *pending) {
    int code = one(__func__, device, "mig", current);
    if (!code) *pending = *current;
    return code;
}

int nvmlDeviceGetEccMode(Device *device, unsigned *current, unsigned *pending) {
    int code = one(__func__, device, "ecc", current);
    if (!code) *pending = *current;
    return code;
}

int nvmlSystemGetDriverVersion(char *out, unsigned size) {
    ENTER(NULL);
    const char *version = raw("driver");
    if (version) snprintf(out, size, "%s", version);
    return leave(version ? OK : UNSUPPORTED);
}

int nvmlSystemGetCudaDriverVersion(int *out) {
    ENTER(NULL);
    *out = (int)number("cuda", 0);
    return leave(*out ? OK : UNSUPPORTED);
}

int nvmlDeviceGetMaxMigDeviceCount(Device *device, unsigned *out) {
    ENTER(device);
    *out = PARTS;
    return leave(OK);
}

int nvmlDeviceGetMigDeviceHandleByIndex(Device *device, unsigned index, Device **out) {
    if (index >= PARTS) return INVALID;
    ENTER(device);
    Device *part = &devices[device->gpu][index + 1];
    if (!of(part, "uuid")) return leave(NOT_FOUND);
    *out = part;
    return leave(OK);
}

int nvmlDeviceGetUtilizationRates(Device *device, unsigned *out) {
    unsigned long long gpu, memory = 0;
    ENTER(device);
    int code = value(device, "utilization", &gpu);
    if (!code) code = value(device, "utilization.memory", &memory);
    if (!code) out[0] = (unsigned)gpu, out[1] = (unsigned)memory;
    return leave(code);
}

int nvmlDeviceGetMemoryInfo(Device *device, unsigned long long *out) {
    ENTER(device);
    int code = value(device, "memory.total", &out[0]);
    if (!code) code = value(device, "memory.used", &out[2]);
    out[1] = out[0] - out[2];
    return leave(code);
}

int nvmlDeviceGetMemoryInfo_v2(Device *device, void *out) {
    struct { unsigned version; unsigned long long total, reserved, free, used; } *info = out;
    ENTER(device);
    int code = value(device, "memory.total", &info->total);
    if (!code) code = value(device, "memory.used", &info->used);
    info->reserved = info->total / 100;
    info->free = info->total - info->reserved - info->used;
    return leave(code);
}

int nvmlDeviceGetTotalEnergyConsumption(Device *device, unsigned long long *out) {
    ENTER(device);
    return leave(value(device, "energy", out));
}

int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *out) {
    ENTER(device);
    return leave(value(device, "reasons", out));
}

int nvmlDeviceGetEncoderUtilization(Device *device, unsigned *out, unsigned *period) {
    *period = 167000;
    return one(__func__, device, "encoder", out);
}

int nvmlDeviceGetDecoderUtilization(Device *device, unsigned *out, unsigned *period) {
    *period = 167000;
    return one(__func__, device, "decoder", out);
}

typedef struct {
    unsigned field, scope;
    long long timestamp, latency;
    int type, code;
    unsigned long long value;
} Field;

int nvmlDeviceGetFieldValues(Device *device, int wanted, Field *fields) {
    ENTER(device);
    for (int at = 0; at < wanted; at++) {
        char key[64];
        snprintf(key, sizeof key, "field_delay.%u", fields[at].field);
        const char *delay = of(device, key);
        last(delay ? strtol(delay, NULL, 0) : 0);
        if (fields[at].scope) snprintf(key, sizeof key, "field.%u.%u", fields[at].field, fields[at].scope);
        else snprintf(key, sizeof key, "field.%u", fields[at].field);
        fields[at].type = 3; /* unsigned long long */
        fields[at].code = value(device, key, &fields[at].value);
    }
    return leave(OK);
}

typedef struct { unsigned pid; unsigned long long memory; unsigned gpu_instance, compute_instance; } Process;

static int processes(const char *function, Device *device, char kind, unsigned *size, Process *out) {
    int code = enter(function, device), found = 0;
    if (code) return leave(code);
    for (int at = 0; at < 256; at++) {
        char key[32], of_kind;
        unsigned pid;
        long long memory;
        snprintf(key, sizeof key, "process.%d", at);
        const char *line = of(device, key);
        if (!line) break;
        if (sscanf(line, "%u %lld %c", &pid, &memory, &of_kind) != 3 || of_kind != kind) continue;
        if (out && (unsigned)found < *size)
            out[found] = (Process){pid, (unsigned long long)memory, ~0u, ~0u};
        found++;
    }
    unsigned had = *size;
    *size = (unsigned)found;
    return leave(found && (!out || had < (unsigned)found) ? TOO_SMALL : OK);
}

int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *size, Process *out) {
    return processes(__func__, device, 'c', size, out);
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(Device *device, unsigned *size, Process *out) {
    return processes(__func__, device, 'g', size, out);
}

typedef struct { unsigned pid; unsigned long long at; unsigned sm, memory, encoder, decoder; } Busy;

int nvmlDeviceGetProcessUtilization(Device *device, Busy *out, unsigned *size, unsigned long long since) {
    ENTER(device);
    unsigned found = 0;
    for (int at = 0; at < 256; at++) {
        char key[32];
        Busy busy = {0};
        snprintf(key, sizeof key, "busy.%d", at);
        const char *line = of(device, key);
        if (!line) break;
        if (sscanf(line, "%u %llu %u", &busy.pid, &busy.at, &busy.sm) != 3 || busy.at <= since) continue;
        if (out && found < *size) out[found] = busy;
        found++;
    }
    if (!found) return leave(of(device, "busy.0") ? NOT_FOUND : UNSUPPORTED);
    unsigned had = *size;
    *size = found;
    return leave(!out || had < found ? TOO_SMALL : OK);
}

int nvmlEventSetCreate(void **out) {
    ENTER(NULL);
    *out = &told;
    return leave(OK);
}

int nvmlDeviceRegisterEvents(Device *device, unsigned long long types, void *set) {
    (void)types, (void)set;
    ENTER(device);
    return leave(OK);
}

int nvmlEventSetFree(void *set) {
    (void)set;
    ENTER(NULL);
    return leave(OK);
}

int nvmlEventSetWait_v2(void *set, void *out, unsigned milliseconds) {
    (void)set, (void)milliseconds;
    struct { Device *device; unsigned long long type, data; unsigned gpu, compute; } *event = out;
    char key[32];
    int gpu;
    unsigned long long code;
    ENTER(NULL);
    if (!raw("xid.0")) told = 0;
    snprintf(key, sizeof key, "xid.%d", told);
    const char *line = raw(key);
    if (!line || sscanf(line, "%d %llu", &gpu, &code) != 2) return leave(TIMEOUT);
    told++;
    event->device = &devices[gpu][0];
    event->type = 8;
    event->data = code;
    event->gpu = event->compute = ~0u;
    return leave(OK);
}

typedef struct { Device *device; int instance; } Sample;

int nvmlGpmQueryDeviceSupport(Device *device, unsigned *out) {
    return one(__func__, device, "gpm", &out[1]);
}

int nvmlGpmSampleAlloc(Sample **out) {
    ENTER(NULL);
    *out = calloc(1, sizeof **out);
    return leave(OK);
}

int nvmlGpmSampleFree(Sample *sample) {
    free(sample);
    return OK;
}

int nvmlGpmSampleGet(Device *device, Sample *sample) {
    ENTER(device);
    *sample = (Sample){device, -1};
    return leave(OK);
}

int nvmlGpmMigSampleGet(Device *device, unsigned instance, Sample *sample) {
    ENTER(device);
    *sample = (Sample){device, (int)instance};
    return leave(OK);
}

int nvmlGpmMetricsGet(void *in) {
    struct {
        unsigned version, wanted;
        Sample *first, *second;
        struct { unsigned metric; int code; double value; const char *name, *label, *unit; } metrics[];
    } *get = in;
    if (!get->first->device || !get->second->device) return INVALID;
    ENTER(get->second->device);
    for (unsigned at = 0; at < get->wanted; at++) {
        char key[64];
        if (get->second->instance < 0) snprintf(key, sizeof key, "gpm.%u", get->metrics[at].metric);
        else snprintf(key, sizeof key, "gi.%d.gpm.%u", get->second->instance, get->metrics[at].metric);
        const char *found = of(get->second->device, key);
        get->metrics[at].code = found ? OK : UNSUPPORTED;
        get->metrics[at].value = found ? strtod(found, NULL) : 0;
    }
    return leave(OK);
}
