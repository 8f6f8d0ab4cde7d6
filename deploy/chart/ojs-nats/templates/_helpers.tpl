{{- define "ojs.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{/* A number as it is written: Helm reads numbers of files as floats, which print 8388608 as 8.388608e+06. */}}
{{- define "ojs.text" -}}
{{- if and (kindIs "float64" .) (eq . (floor .)) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* Bytes: a number, or a quantity like 100Gi. */}}
{{- define "ojs.bytes" -}}
{{- $said := include "ojs.text" . }}
{{- $unit := regexFind "(k|[MGT]|[KMGT]i)$" $said }}
{{- $sizes := dict "" 1 "k" 1000 "M" 1000000 "G" 1000000000 "T" 1000000000000 "Ki" 1024 "Mi" 1048576 "Gi" 1073741824 "Ti" 1099511627776 }}
{{- if not (regexMatch "^[0-9]+(k|[MGT]|[KMGT]i)?$" $said) }}
{{- fail (printf "nats.storageLimit: %s is no number of bytes, and no quantity like 100Gi" $said) }}
{{- end }}
{{- mul (trimSuffix $unit $said | int64) (get $sizes $unit | int64) }}
{{- end }}

{{/* Where NATS is. Users may listen for answers below an inbox of their own alone. */}}
{{- define "ojs.nats" -}}
{{- $url := .Values.nats.url }}
{{- $users := or .Values.nats.credsSecret .Values.nats.operatorSecret }}
{{- if and $users (not (contains "inbox_prefix=" $url)) }}
{{- printf "%s%sinbox_prefix=_INBOX_%s_{role}" $url (ternary "&" "?" (contains "?" $url)) .Values.nats.namespace }}
{{- else }}{{ $url }}{{ end }}
{{- end }}

{{- define "ojs.labels" -}}
app.kubernetes.io/name: ojs-nats
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "ojs.meta" -}}
name: {{ .root.Release.Name }}-{{ .component }}
labels:
  {{- include "ojs.labels" . | nindent 2 }}
  app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
  app.kubernetes.io/managed-by: {{ .root.Release.Service }}
  helm.sh/chart: {{ .root.Chart.Name }}-{{ .root.Chart.Version }}
{{- end }}

{{- define "ojs.pod" -}}
serviceAccountName: {{ .root.Release.Name }}-ojs-nats
automountServiceAccountToken: false
terminationGracePeriodSeconds: 60
securityContext:
  {{- toYaml .root.Values.podSecurityContext | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
topologySpreadConstraints:
  - maxSkew: 1
    topologyKey: kubernetes.io/hostname
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "ojs.labels" . | nindent 8 }}
{{- end }}

{{- define "ojs.container" -}}
name: {{ .component }}
image: {{ include "ojs.image" .root | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
startupProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 2
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: health}
  periodSeconds: 3
  timeoutSeconds: 5
{{- end }}

{{- define "ojs.env" -}}
{{- $fixed := list "OJS_NATS" "OJS_NAMESPACE" "OJS_REPLICAS" "OJS_STORAGE_LIMIT" "OJS_NATS_CREDS" "OJS_NATS_CA" "OJS_HEALTH_HOST" "OJS_HEALTH_PORT" "OJS_INSTANCE" "OJS_HOST" "OJS_PORT" "OJS_REQUEST_LOG" "OJS_NATS_API_URL" "OJS_ALLOWED_HOSTS" "OJS_INSECURE" "OJS_API_KEY_FILE" "OJS_TLS_CERT" "OJS_TLS_KEY" "OJS_PROJECTOR_DATA" }}
{{- range $name, $_ := .root.Values.settings }}
{{- if has $name $fixed }}
{{- fail (printf "settings.%s: the chart sets this one; it has a value of its own in values.yaml, or is fixed" $name) }}
{{- end }}
{{- end }}
- {name: OJS_NATS, value: {{ include "ojs.nats" .root | quote }}}
- {name: OJS_NAMESPACE, value: {{ .root.Values.nats.namespace | quote }}}
- {name: OJS_REPLICAS, value: {{ int .root.Values.nats.replicas | quote }}}
{{- if .root.Values.nats.storageLimit }}
- {name: OJS_STORAGE_LIMIT, value: {{ include "ojs.bytes" .root.Values.nats.storageLimit | quote }}}
{{- end }}
{{- if .creds | default .root.Values.nats.credsSecret }}
- {name: OJS_NATS_CREDS, value: {{ printf "/etc/ojs-nats/creds/%s" .root.Values.nats.credsFile | quote }}}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- {name: OJS_NATS_CA, value: /etc/ojs-nats/nats-ca/ca.crt}
{{- end }}
- {name: OJS_HEALTH_HOST, value: 0.0.0.0}
- {name: OJS_HEALTH_PORT, value: "9100"}
{{- if not (hasKey .root.Values.settings "OJS_LOG_FORMAT") }}
- {name: OJS_LOG_FORMAT, value: json}
{{- end }}
- name: OJS_INSTANCE
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- range $name, $value := .root.Values.settings }}
- {name: {{ $name }}, value: {{ include "ojs.text" $value | quote }}}
{{- end }}
{{- end }}

{{- define "ojs.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .creds | default .root.Values.nats.credsSecret }}
- {name: creds, mountPath: /etc/ojs-nats/creds, readOnly: true}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- {name: nats-ca, mountPath: /etc/ojs-nats/nats-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "ojs.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- with .creds | default .root.Values.nats.credsSecret }}
- name: creds
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- with .root.Values.nats.caSecret }}
- name: nats-ca
  secret: {secretName: {{ . | quote }}}
{{- end }}
{{- end }}
