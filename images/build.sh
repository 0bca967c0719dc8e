#!/bin/sh
# In a build stage: makes the virtual environment /opt/reveal that the image takes.
#
#   images/build.sh dependencies IMAGE      what images/locks/IMAGE.txt pins, by hash
#   images/build.sh package PACKAGE...      our own packages, of them only the named ones
#
# pip lives in an environment of its own and stays behind, as do the compiler and all caches.
set -eu

# pip runs in the environment it installs into, and imports from it
export PYTHONDONTWRITEBYTECODE=1

home=/opt/reveal
tools=/opt/tools
images=$(cd "$(dirname "$0")" && pwd)

pip() {
  "$tools/bin/python" -m pip --quiet --no-input --no-cache-dir --disable-pip-version-check "$@"
}

# no bytecode yet: pip's would name its time of day, and all is compiled at the end
into_home() {
  pip --python "$home/bin/python" install --no-compile --no-deps --no-warn-script-location "$@"
}

dependencies() { # image
  python3 -m venv "$tools"
  pip install --require-hashes --only-binary :all: --requirement "$images/locks/build.txt"
  python3 -m venv --without-pip "$home"
  rm -f "$home"/bin/[Aa]ctivate*
  into_home --require-hashes --only-binary :all: --requirement "$images/locks/$1.txt"
}

package() { # package...
  pip wheel --no-build-isolation --no-deps --wheel-dir "$tools/wheels" "$images/.."
  into_home "$tools"/wheels/*.whl
  "$home/bin/python" -B "$images/trim.py" "$home" "$@"
  case " $* " in *" reveal_collector "*) check_native ;; esac
  # Checked by nothing at start (PEP 552): times of files change on their way into a layer, and
  # what no longer fits would be compiled anew at every start. A fixed seed fixes the order of sets.
  PYTHONHASHSEED=0 "$home/bin/python" -m compileall -q -j 1 \
    --invalidation-mode unchecked-hash "$home/lib"
  find "$home" -exec touch --no-dereference --date "@${SOURCE_DATE_EPOCH:-0}" {} +
}

# A wheel can also be built without a compiler. The image needs the C parts: it has no NumPy, which
# the Python path imports.
check_native() {
  "$home/bin/python" -B -m reveal_collector.native
}

command=$1
shift
"$command" "$@"
