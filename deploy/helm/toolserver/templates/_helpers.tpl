{{- define "toolserver.name" -}}
{{ .Release.Name | trunc 50 | trimSuffix "-" }}
{{- end }}

{{- define "toolserver.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
{{- end }}

{{- define "toolserver.server" -}}
app: {{ include "toolserver.name" . }}
role: server
{{- end }}

{{- define "toolserver.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "toolserver.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "toolserver.environment" -}}
- configMapRef: {name: {{ include "toolserver.name" . }}-settings}
- secretRef: {name: {{ .Values.secrets }}}
{{- end }}

{{- define "toolserver.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end }}

{{- /* How many instances count limits together: each worker is one. */}}
{{- define "toolserver.count" -}}
{{ mul .Values.instances .Values.workers }}
{{- end }}

{{- /* The settings that the manifests rely on, and then those of the values. */}}
{{- define "toolserver.settings" -}}
{{- $own := dict "TOOLSERVER_HOST" "0.0.0.0" "TOOLSERVER_DATA_DIR" "/data" "TOOLSERVER_METRICS__HOST" "0.0.0.0" "TOOLSERVER_METRICS__PORT" "9464" }}
{{- if not .Values.ledgerFile.enabled }}
{{- $_ := set $own "TOOLSERVER_SCALING__INSTANCES" (include "toolserver.count" .) }}
{{- $_ := set $own "TOOLSERVER_SCALING__KEYS_DIR" "/keys" }}
{{- end }}
{{- toYaml (merge (deepCopy .Values.settings) $own) }}
{{- end }}
