{{/* The environment of a role. It beats the files, and holds what the chart itself decides. */}}
{{- define "waggle.env" -}}
{{- $v := .root.Values -}}
{{- $r := index $v.roles .role -}}
- {name: WAGGLE_CONFIG, value: /etc/waggle}
- {name: WAGGLE_ADDR, value: "0.0.0.0:9000"}
- {name: WAGGLE_TELEMETRY_ADDR, value: "0.0.0.0:9464"}
- {name: WAGGLE_LOG_FORMAT, value: json}
- {name: WAGGLE_SHUTDOWN, value: {{ $r.drainSeconds }}s}
- {name: GOMEMLIMIT, value: {{ $r.goMemLimit | quote }}}
{{ include "waggle.busEnv" . }}
- {name: WAGGLE_SIGNING_PUBLIC_KEY_FILE, value: /etc/waggle-signing-public/signing.pub}
{{- if eq .role "gateway" }}
- {name: WAGGLE_SIGNING_KEY_FILE, value: /etc/waggle-signing/signing.seed}
- {name: WAGGLE_GATEWAY_DRAIN_SPREAD, value: {{ $r.spreadSeconds }}s}
{{- with $v.trustedProxies }}
- {name: WAGGLE_GATEWAY_TRUSTED_PROXIES, value: {{ join "," . | quote }}}
{{- end }}
{{- end }}
{{- if eq .role "worker" }}
{{- include "waggle.modelEnv" (dict "name" "OPENAI" "model" $v.modelKeys.openai) }}
{{- include "waggle.modelEnv" (dict "name" "ANTHROPIC" "model" $v.modelKeys.anthropic) }}
{{- end }}
{{- if and (eq .role "session") $v.stateKey.secret }}
- {name: WAGGLE_SESSION_STATE_KEY_FILE, value: /etc/waggle-state/state.key}
{{- end }}
{{- if eq .role "tools" }}
{{- if $r.workspaceClaim }}
- {name: WAGGLE_WORKSPACE, value: /workspace}
{{- else }}
- {name: WAGGLE_TOOLS_BUILTIN, value: "false"}
{{- end }}
{{- end }}
{{- with $v.telemetry.otlpEndpoint }}
- {name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ . | quote }}}
- {name: OTEL_SERVICE_NAME, value: waggle-{{ $.role }}}
{{- end }}
{{- with $r.env }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "waggle.modelEnv" -}}
{{- if .model.secret }}
- name: {{ .name }}_API_KEY
  valueFrom: {secretKeyRef: {name: {{ .model.secret }}, key: {{ .model.key }}}}
{{- end }}
{{- if .model.baseURL }}
- {name: {{ .name }}_BASE_URL, value: {{ .model.baseURL | quote }}}
{{- end }}
{{- end -}}
