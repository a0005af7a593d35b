{{- define "nats.fullname" -}}
{{- $name := .Values.nameOverride | default "nats" -}}
{{- if .Values.fullnameOverride }}{{ .Values.fullnameOverride }}
{{- else if contains $name .Release.Name }}{{ .Release.Name }}
{{- else }}{{ .Release.Name }}-{{ $name }}{{ end -}}
{{- end -}}

{{- define "nats.selector" -}}
app.kubernetes.io/name: {{ .Values.nameOverride | default "nats" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: nats
{{- end -}}

{{/*
Lays "merge" over an object, and then does what "patch" says. Of JSON Patch it knows how
to add to the end of a list. Takes (dict "object" YAML "by" VALUES), gives JSON.
*/}}
{{- define "nats.changed" -}}
{{- $object := mergeOverwrite (fromYaml .object) (.by.merge | default dict) -}}
{{- range .by.patch -}}
{{- if or (ne .op "add") (not (hasSuffix "/-" .path)) }}{{ fail (printf "the stand-in cannot %s %s" .op .path) }}{{ end -}}
{{- $parent := $object -}}
{{- $steps := .path | trimPrefix "/" | trimSuffix "/-" | splitList "/" -}}
{{- range initial $steps }}{{ $parent = index $parent . }}{{ end -}}
{{- if not (hasKey $parent (last $steps)) }}{{ fail (printf "patch: there is no %s" .path) }}{{ end -}}
{{- $_ := set $parent (last $steps) (append (index $parent (last $steps)) .value) -}}
{{- end -}}
{{- toJson $object -}}
{{- end -}}
