{{/* Name of the release's objects, short enough for every ending. */}}
{{- define "reveal.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride -}}
{{- else if contains "reveal" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-reveal" (.Release.Name | trunc 33 | trimSuffix "-") -}}
{{- end -}}
{{- end -}}

{{/* Labels of a pod of this chart: (dict "root" $ "component" "operator"). */}}
{{- define "reveal.selector" -}}
app.kubernetes.io/name: reveal
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- end -}}

{{/* Labels of an object of this chart: (dict "root" $ "component" "operator"). */}}
{{- define "reveal.labels" -}}
{{ include "reveal.selector" . }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Labels of the pods that the operator makes; they have no instance: ("analyzer"). */}}
{{- define "reveal.childSelector" -}}
app.kubernetes.io/name: reveal
app.kubernetes.io/component: {{ . }}
app.kubernetes.io/managed-by: reveal-operator
{{- end -}}

{{/* registry/repository:tag@digest of an image: (dict "registry" "…" "image" (dict …) "tag" "…"). */}}
{{- define "reveal.imageName" -}}
{{- $image := .image -}}
{{- with .registry -}}{{ . }}/{{- end -}}
{{- $image.repository }}:{{ $image.tag | default .tag -}}
{{- with $image.digest -}}@{{ . }}{{- end -}}
{{- end -}}

{{/* The image of one of our components: (dict "root" $ "component" "operator"). */}}
{{- define "reveal.image" -}}
{{- $values := .root.Values -}}
{{- $image := (index $values .component).image -}}
{{- $tag := $values.image.tag | default .root.Chart.AppVersion -}}
{{- include "reveal.imageName" (dict "registry" $values.image.registry "image" $image "tag" $tag) -}}
{{- end -}}

{{/* Name of a component's ServiceAccount: (dict "root" $ "component" "operator"). */}}
{{- define "reveal.serviceAccount" -}}
{{- $account := index .root.Values.serviceAccounts .component -}}
{{- $account.name | default (printf "%s-%s" (include "reveal.fullname" .root) .component) -}}
{{- end -}}

{{/* A component's ServiceAccount, whole: (dict "root" $ "component" "operator"). */}}
{{- define "reveal.serviceAccountObject" -}}
{{- $account := index .root.Values.serviceAccounts .component -}}
{{- if $account.create }}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ include "reveal.serviceAccount" . }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "reveal.labels" . | nindent 4 }}
  {{- with $account.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
# pods ask for the token themselves
automountServiceAccountToken: false
{{- end }}
{{- end -}}

{{/* Who a binding is for: (dict "root" $ "component" "operator"). */}}
{{- define "reveal.subjects" -}}
- kind: ServiceAccount
  name: {{ include "reveal.serviceAccount" . }}
  namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* A ClusterRole and its binding: (dict "root" $ "component" "analyzer" "rules" "- apiGroups: …"). */}}
{{- define "reveal.clusterRole" -}}
{{- $name := printf "%s-%s" (include "reveal.fullname" .root) .component -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ $name }}
  labels:
    {{- include "reveal.labels" . | nindent 4 }}
rules:
  {{- .rules | nindent 2 }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "reveal.labels" . | nindent 4 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: {{ $name }}
subjects:
  {{- include "reveal.subjects" . | nindent 2 }}
{{- end -}}

{{/* Name of the evaluation Redis' objects. */}}
{{- define "reveal.evaluationRedis" -}}
{{ include "reveal.fullname" . }}-evaluation-redis
{{- end -}}

{{/* Name of the Secret with the login of collectors at the evaluation Redis: no longer than the longest name of the release. */}}
{{- define "reveal.redisCollector" -}}
{{ include "reveal.fullname" . }}-redis-collector
{{- end -}}

{{/* What collectors may do in Redis. A Redis that runs with other users is replaced when this changes. */}}
{{- define "reveal.collectorRights" -}}
~reveal:{*}:samples ~reveal:{*}:node:* ~reveal:{*}:table:* ~reveal:{*}:changes:* +xadd +hset +hdel +set +expire +multi +exec +select +client|setname
{{- end -}}

{{/* The Redis of profiles that name none, as flags of the operator. */}}
{{- define "reveal.redisFlags" -}}
{{- $redis := .Values.redis -}}
{{- if .Values.evaluationRedis.enabled -}}
- --redis-url=redis://{{ include "reveal.evaluationRedis" . }}.{{ .Release.Namespace }}.svc:6379/0
- --redis-credentials-secret={{ include "reveal.evaluationRedis" . }}
- --redis-collector-credentials-secret={{ include "reveal.redisCollector" . }}
{{- else if $redis.url -}}
- --redis-url={{ $redis.url }}
{{- with $redis.existingCollectorSecret }}
- --redis-collector-credentials-secret={{ . }}
{{- end }}
{{- with $redis.existingSecret }}
- --redis-credentials-secret={{ . }}
- --redis-username-key={{ $redis.existingSecretUsernameKey }}
- --redis-password-key={{ $redis.existingSecretPasswordKey }}
{{- end }}
{{- with $redis.tls.caSecret }}
- --redis-ca-secret={{ . }}
- --redis-ca-key={{ $redis.tls.caKey }}
{{- end }}
{{- if $redis.tls.insecureSkipVerify }}
- --redis-insecure-skip-verify
{{- end }}
{{- end -}}
{{- end -}}

{{/* Securing of a container that needs nothing of its node. */}}
{{- define "reveal.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Securing of a pod that needs nothing of its node. */}}
{{- define "reveal.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{/* Metadata that a CustomResourceDefinition has in a release. */}}
{{- define "reveal.crdMetadata" -}}
labels:
  {{- include "reveal.labels" (dict "root" . "component" "crds") | nindent 2 }}
{{- if .Values.crds.keep }}
annotations:
  helm.sh/resource-policy: keep
{{- end }}
{{- end -}}

{{/* Not empty where profiles can be made: their kind is served, or there is no cluster to ask. */}}
{{- define "reveal.makesProfiles" -}}
{{- if .Capabilities.APIVersions.Has "reveal.dev/v1alpha1/RevealProfile" -}}
served
{{- else if not (lookup "v1" "Namespace" "" "kube-system") -}}
no cluster
{{- end -}}
{{- end -}}

{{/* The alerts of files/alerts.yaml without those that are not wanted, each with its page. */}}
{{- define "reveal.alerts" -}}
{{- $values := .Values.prometheusRule -}}
{{- $rules := list -}}
{{- range $alert := (.Files.Get "files/alerts.yaml" | fromYaml).alerts -}}
{{- if not (has $alert.alert $values.disabled) -}}
{{- $page := dict "runbook" (printf "docs/reference/alerts.md#%s" (lower $alert.alert)) -}}
{{- if $values.runbookURL -}}
{{- $page = dict "runbook_url" (printf "%s#%s" $values.runbookURL (lower $alert.alert)) -}}
{{- end -}}
{{- $rules = append $rules (merge (dict "annotations" $page) $alert) -}}
{{- end -}}
{{- end -}}
{{- toYaml $rules -}}
{{- end -}}

{{/* The folder in which the operator has the files of metrics.access.secret. */}}
{{- define "reveal.metricsAccessFolder" -}}
/etc/reveal-metrics
{{- end -}}

{{/* Fields of a monitor's endpoint where the access to metrics is restricted. */}}
{{- define "reveal.scrapeAccess" -}}
{{- $access := .Values.metrics.access -}}
{{- if $access.secret -}}
scheme: https
{{- with $access.tlsConfig }}
tlsConfig:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $access.authorization }}
authorization:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
{{- end -}}
