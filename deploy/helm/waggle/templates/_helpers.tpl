{{/* The name of everything: the release's. */}}
{{- define "waggle.name" -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "waggle.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are found; they never change. Takes (dict "root" $ "role" "gateway"). */}}
{{- define "waggle.selector" -}}
app.kubernetes.io/name: waggle
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .role }}
app.kubernetes.io/component: {{ . }}
{{- end }}
{{- end -}}

{{- define "waggle.labels" -}}
{{ include "waggle.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* The name of the NATS chart's Service, made as that chart makes it. */}}
{{- define "waggle.natsName" -}}
{{- if .Values.nats.fullnameOverride -}}
{{- .Values.nats.fullnameOverride -}}
{{- else -}}
{{- $name := .Values.nats.nameOverride | default "nats" -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "waggle.natsURL" -}}
{{- if and .Values.nats.enabled .Values.nats.external.url -}}
{{- fail "nats.enabled and nats.external.url: choose one" -}}
{{- else if .Values.nats.enabled -}}
{{ ternary "tls" "nats" (ne .Values.natsTLS.secret "") }}://{{ include "waggle.natsName" . }}:4222
{{- else -}}
{{- required "name your NATS servers (nats.external.url), or set nats.enabled" .Values.nats.external.url -}}
{{- end -}}
{{- end -}}

{{- define "waggle.natsMonitoring" -}}
{{- if .Values.nats.enabled -}}
{{ include "waggle.natsName" . }}-headless.{{ .Release.Namespace }}.svc:8222
{{- else -}}
{{- required "KEDA asks NATS for the lag: name its monitoring (nats.external.monitoring)" .Values.nats.external.monitoring -}}
{{- end -}}
{{- end -}}

{{/* Consumers of the stream CMD whose lag says how much work waits for a role. */}}
{{- define "waggle.consumers" -}}
{{- $names := list -}}
{{- $services := dict "session" (list "session") "pipeline" (list "pipeline") "task" (list "task") "team" (list "team" "member") -}}
{{- range $service := index $services . | default list -}}
{{- range $p := until 16 -}}
{{- $names = append $names (printf "%s-%02d" $service $p) -}}
{{- end -}}
{{- end -}}
{{- if eq . "agent" }}{{ $names = list "agent" }}{{ end -}}
{{- if eq . "task" }}{{ $names = append $names "task-call" }}{{ end -}}
{{- $names | join " " -}}
{{- end -}}

{{/* Settings that all processes get from the environment: they beat the files. */}}
{{- define "waggle.busEnv" -}}
- {name: WAGGLE_NATS, value: {{ include "waggle.natsURL" .root | quote }}}
- {name: WAGGLE_NATS_NKEY, value: /etc/waggle-nats/nkey}
- {name: WAGGLE_NATS_BOOTSTRAP, value: verify}
- {name: WAGGLE_NATS_REPLICAS, value: {{ .root.Values.streams.replicas | quote }}}
- {name: WAGGLE_NATS_EVENT_MAX_AGE, value: {{ .root.Values.streams.eventMaxAge | quote }}}
- {name: WAGGLE_NATS_EVENT_MAX_BYTES, value: {{ .root.Values.streams.eventMaxBytes | int64 | quote }}}
{{- with .root.Values.natsTLS }}
{{- if .secret }}
- {name: WAGGLE_NATS_TLS_CA, value: /etc/waggle-tls/{{ .ca }}}
{{- if .cert }}
- {name: WAGGLE_NATS_TLS_CERT, value: /etc/waggle-tls/{{ .cert }}}
- {name: WAGGLE_NATS_TLS_KEY, value: /etc/waggle-tls/{{ .key }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "waggle.busMounts" -}}
- {name: nkey, mountPath: /etc/waggle-nats, readOnly: true}
{{- if .root.Values.natsTLS.secret }}
- {name: nats-tls, mountPath: /etc/waggle-tls, readOnly: true}
{{- end }}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "waggle.busVolumes" -}}
- name: nkey
  secret:
    secretName: {{ .root.Values.nkeys.secretPrefix }}-{{ .role }}
    defaultMode: 0440
    items: [{key: {{ .root.Values.nkeys.key }}, path: nkey}]
{{- with .root.Values.natsTLS.secret }}
- name: nats-tls
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{/* What the restricted profile asks of a pod. The group may read the mounted secrets. */}}
{{- define "waggle.podSecurity" -}}
automountServiceAccountToken: false
# Otherwise every Service of the namespace becomes variables, some named WAGGLE_...
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "waggle.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* The names of the Secrets that the pods of a role read. */}}
{{- define "waggle.secretNames" -}}
{{- $v := .root.Values -}}
{{- $names := list (printf "%s-%s" $v.nkeys.secretPrefix .role) $v.natsTLS.secret -}}
{{- with index $v.roles .role -}}
{{- $names = append $names .configSecret.name -}}
{{- range .env }}{{ $names = append $names (dig "valueFrom" "secretKeyRef" "name" "" .) }}{{ end -}}
{{- end -}}
{{- if eq .role "agent" -}}{{- $names = concat $names (list $v.modelKeys.openai.secret $v.modelKeys.anthropic.secret) -}}{{- end -}}
{{- if eq .role "session" -}}{{- $names = append $names $v.stateKey.secret -}}{{- end -}}
{{- $names | compact | uniq | sortAlpha | join " " -}}
{{- end -}}

{{/*
What those Secrets hold in the cluster, as an annotation: pods whose Secrets have changed
are replaced by "helm upgrade". Nothing where there is no cluster to ask.
*/}}
{{- define "waggle.secretsChecksum" -}}
{{- if .root.Values.secretChanges.lookup -}}
{{- $namespace := .root.Release.Namespace -}}
{{- $found := dict -}}
{{- range $name := include "waggle.secretNames" . | splitList " " -}}
{{- with lookup "v1" "Secret" $namespace $name -}}
{{- $_ := set $found $name (.data | default dict) -}}
{{- end -}}
{{- end -}}
{{- with $found }}checksum/secrets: {{ toYaml . | sha256sum }}{{ end -}}
{{- end -}}
{{- end -}}

{{- define "waggle.roles" -}}
gateway session pipeline agent task team tools
{{- end -}}
