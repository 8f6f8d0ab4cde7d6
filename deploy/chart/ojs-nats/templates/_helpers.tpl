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
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile: {type: RuntimeDefault}
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
image: "{{ .root.Values.image.repository }}:{{ .root.Values.image.tag | default .root.Chart.AppVersion }}"
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
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
- {name: OJS_NATS, value: {{ .root.Values.nats.url | quote }}}
- {name: OJS_NAMESPACE, value: {{ .root.Values.nats.namespace | quote }}}
- {name: OJS_REPLICAS, value: {{ .root.Values.nats.replicas | quote }}}
{{- if .root.Values.nats.storageLimit }}
- {name: OJS_STORAGE_LIMIT, value: {{ .root.Values.nats.storageLimit | int64 | quote }}}
{{- end }}
{{- if .root.Values.nats.credsSecret }}
- {name: OJS_NATS_CREDS, value: "/etc/ojs-nats/creds/{role}.creds"}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- {name: OJS_NATS_CA, value: /etc/ojs-nats/nats-ca/ca.crt}
{{- end }}
- {name: OJS_HEALTH_HOST, value: 0.0.0.0}
- {name: OJS_HEALTH_PORT, value: "9100"}
- {name: OJS_LOG_FORMAT, value: json}
- name: OJS_INSTANCE
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- range $name, $value := .root.Values.settings }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{- define "ojs.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- if .root.Values.nats.credsSecret }}
- {name: creds, mountPath: /etc/ojs-nats/creds, readOnly: true}
{{- end }}
{{- if .root.Values.nats.caSecret }}
- {name: nats-ca, mountPath: /etc/ojs-nats/nats-ca, readOnly: true}
{{- end }}
{{- end }}

{{- define "ojs.volumes" -}}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- with .root.Values.nats.credsSecret }}
- name: creds
  secret: {secretName: {{ . | quote }}, defaultMode: 0440}
{{- end }}
{{- with .root.Values.nats.caSecret }}
- name: nats-ca
  secret: {secretName: {{ . | quote }}}
{{- end }}
{{- end }}
