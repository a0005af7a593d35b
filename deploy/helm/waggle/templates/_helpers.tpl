{{/* The name of everything: the release's, unless another one is given. */}}
{{- define "waggle.name" -}}
{{- $suffix := ternary (printf "-%s" .Values.nameOverride) "" (ne .Values.nameOverride "") -}}
{{- .Values.fullnameOverride | default (printf "%s%s" .Release.Name $suffix) | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* The image; a registry for all charts of the release takes the place of its own. */}}
{{- define "waggle.image" -}}
{{- $repository := .Values.image.repository -}}
{{- with dig "image" "registry" "" .Values.global -}}
{{- $repository = printf "%s/%s" . (regexReplaceAll "^[^/]*[.:][^/]*/" $repository "") -}}
{{- end -}}
{{- if .Values.image.digest -}}
{{ $repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ $repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* Labels by which pods are found; they never change. Takes (dict "root" $ "role" "gateway"). */}}
{{- define "waggle.selector" -}}
app.kubernetes.io/name: {{ .root.Values.nameOverride | default "waggle" }}
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
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* Labels of pods: those by which they are found, and the common ones. */}}
{{- define "waggle.podLabels" -}}
{{ include "waggle.selector" . }}
{{- with .root.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The name of the NATS chart's Service, made as that chart makes it. */}}
{{- define "waggle.natsName" -}}
{{- $release := .Values.nats.release -}}
{{- ternary $release (printf "%s-nats" $release) (contains "nats" $release) | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "waggle.natsURL" -}}
{{- if and .Values.nats.release .Values.nats.external.url -}}
{{- fail "nats.release and nats.external.url: choose one" -}}
{{- else if .Values.nats.release -}}
{{ ternary "tls" "nats" (ne .Values.natsTLS.secret "") }}://{{ include "waggle.natsName" . }}:4222
{{- else -}}
{{- required "name your NATS servers (nats.external.url), or the release that they are (nats.release)" .Values.nats.external.url -}}
{{- end -}}
{{- end -}}

{{- define "waggle.natsMonitoring" -}}
{{- if .Values.nats.release -}}
{{ include "waggle.natsName" . }}-headless.{{ .Release.Namespace }}.svc:8222
{{- else -}}
{{- required "KEDA asks NATS for the lag: name its monitoring (nats.external.monitoring)" .Values.nats.external.monitoring -}}
{{- end -}}
{{- end -}}

{{/* Consumers of the stream CMD whose lag says how much work waits for a role; from a role and the root. */}}
{{- define "waggle.consumers" -}}
{{- $names := list -}}
{{- $services := dict "session" (list "session") "pipeline" (list "pipeline") "task" (list "task") "team" (list "team" "member") -}}
{{- range $service := index $services .role | default list -}}
{{- range $p := until (int $.root.Values.streams.partitions) -}}
{{- $names = append $names (printf "%s-%02d" $service $p) -}}
{{- end -}}
{{- end -}}
{{- if eq .role "worker" }}{{ $names = list "worker" }}{{ end -}}
{{- if eq .role "task" }}{{ $names = append $names "task-call" }}{{ end -}}
{{- $names | join " " -}}
{{- end -}}

{{/* What the users of the servers may do; the list has to be that of the number of partitions. */}}
{{- define "waggle.accounts" -}}
{{- $n := int .Values.streams.partitions -}}
{{- $text := .Values.nats.accounts | default (.Files.Get "files/accounts.conf") -}}
{{- $has := regexFindAll "GET\\.EVT_[0-9]+\"" $text -1 | uniq | len -}}
{{- if ne $has $n -}}
{{- fail (printf "streams.partitions is %d, and the users of NATS may read %d event streams: run 'waggle keys --dir keys --partitions %d', and install with --set-file nats.accounts=keys/accounts.conf" $n $has $n) -}}
{{- end -}}
{{- $text -}}
{{- end -}}

{{/* Settings that all processes get from the environment: they beat the files. */}}
{{- define "waggle.busEnv" -}}
- {name: WAGGLE_NATS, value: {{ include "waggle.natsURL" .root | quote }}}
- {name: WAGGLE_NATS_NKEY, value: /etc/waggle-nats/nkey}
- {name: WAGGLE_NATS_BOOTSTRAP, value: verify}
- {name: WAGGLE_NATS_REPLICAS, value: {{ .root.Values.streams.replicas | quote }}}
- {name: WAGGLE_NATS_PARTITIONS, value: {{ .root.Values.streams.partitions | quote }}}
- {name: WAGGLE_NATS_EVENT_MAX_AGE, value: {{ .root.Values.streams.eventMaxAge | quote }}}
- {name: WAGGLE_NATS_EVENT_MAX_BYTES, value: {{ .root.Values.streams.eventMaxBytes | int64 | quote }}}
- {name: WAGGLE_NATS_OBJECT_MAX_BYTES, value: {{ .root.Values.streams.objectMaxBytes | int64 | quote }}}
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

{{/*
What the restricted profile asks of a pod. The group may read the mounted secrets. Takes
the root and what a role sets itself ("own"), which is laid over it.
*/}}
{{- define "waggle.podSecurity" -}}
automountServiceAccountToken: false
# Otherwise every Service of the namespace becomes variables, some named WAGGLE_...
enableServiceLinks: false
securityContext: {{- include "waggle.podSecurityContext" . | nindent 2 }}
{{- with concat .root.Values.image.pullSecrets (dig "image" "pullSecretNames" (list) .root.Values.global | default list) }}
imagePullSecrets:
{{- range . }}
  - name: {{ . }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "waggle.podSecurityContext" -}}
{{- $base := dict "runAsNonRoot" true "runAsUser" 65532 "runAsGroup" 65532 "fsGroup" 65532 "fsGroupChangePolicy" "OnRootMismatch" "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $base (deepCopy .root.Values.podSecurityContext) (deepCopy (.own | default dict))) -}}
{{- end -}}

{{- define "waggle.containerSecurity" -}}
{{- $base := dict "allowPrivilegeEscalation" false "readOnlyRootFilesystem" true "runAsNonRoot" true "capabilities" (dict "drop" (list "ALL")) "seccompProfile" (dict "type" "RuntimeDefault") -}}
{{- toYaml (mergeOverwrite $base (deepCopy .root.Values.securityContext) (deepCopy (.own | default dict))) -}}
{{- end -}}

{{/* The names of the Secrets that the pods of a role read. */}}
{{- define "waggle.secretNames" -}}
{{- $v := .root.Values -}}
{{- $names := list (printf "%s-%s" $v.nkeys.secretPrefix .role) $v.natsTLS.secret -}}
{{- with index $v.roles .role -}}
{{- $names = append $names .configSecret.name -}}
{{- range .env }}{{ $names = append $names (dig "valueFrom" "secretKeyRef" "name" "" .) }}{{ end -}}
{{- range .extraEnvFrom }}{{ $names = append $names (dig "secretRef" "name" "" .) }}{{ end -}}
{{- end -}}
{{- if eq .role "worker" -}}{{- $names = concat $names (list $v.modelKeys.openai.secret $v.modelKeys.anthropic.secret) -}}{{- end -}}
{{- if eq .role "session" -}}{{- $names = append $names $v.stateKey.secret -}}{{- end -}}
{{- $names | compact | uniq | sortAlpha | join " " -}}
{{- end -}}

{{/*
A checksum of the contents of those Secrets in the cluster, as an annotation: "helm upgrade"
replaces pods whose Secrets have changed. Empty without a cluster.
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

{{- define "waggle.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "waggle.name" .) -}}
{{- else -}}
{{- required "name the service account that exists already (serviceAccount.name)" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "waggle.roles" -}}
gateway session pipeline worker task team tools
{{- end -}}
