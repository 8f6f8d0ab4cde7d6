{{/* The notes after an installation: a template of its own, so that tests can render it. */}}
{{- define "ojs.notes" -}}
{{- $key := or .Values.gateway.apiKeySecret .Values.gateway.insecure }}
{{- $nats := .Values.nats }}
{{- $image := include "ojs.image" $ }}
ojs-nats {{ .Chart.AppVersion }} is on its way. Its gateway: http{{ if .Values.gateway.tlsSecret }}s{{ end }}://{{ .Release.Name }}-gateway.{{ .Release.Namespace }}.svc:{{ int .Values.gateway.service.port }}
{{- if and $nats.credsSecret (not $nats.operatorSecret) }}

The users of NATS that the processes have may not make the streams. Make them once where the operator's seed is:

  ojs-nats setup --nats '{{ include "ojs.nats" $ }}' --nats-creds operator.nk --namespace {{ $nats.namespace }} --replicas {{ int $nats.replicas }}
{{- end }}
{{- if not $key }}

A gateway starts once there is a key. Make the first one, which is shown once{{ if and $nats.credsSecret (not $nats.operatorSecret) }}, at the same place:

  OJS_NATS_CREDS=operator.nk ojs-nats keys create --name ops --role admin --nats '{{ include "ojs.nats" $ }}' --namespace {{ $nats.namespace }}
{{- else if or $nats.operatorSecret $nats.caSecret }}:
{{- $mounts := list }}
{{- $volumes := list }}
{{- $env := list }}
{{- if $nats.operatorSecret }}
{{- $mounts = append $mounts (dict "name" "creds" "mountPath" "/etc/ojs-nats/creds") }}
{{- $volumes = append $volumes (dict "name" "creds" "secret" (dict "secretName" $nats.operatorSecret)) }}
{{- $env = append $env (dict "name" "OJS_NATS_CREDS" "value" (printf "/etc/ojs-nats/creds/%s" $nats.credsFile)) }}
{{- end }}
{{- if $nats.caSecret }}
{{- $mounts = append $mounts (dict "name" "nats-ca" "mountPath" "/etc/ojs-nats/nats-ca") }}
{{- $volumes = append $volumes (dict "name" "nats-ca" "secret" (dict "secretName" $nats.caSecret)) }}
{{- $env = append $env (dict "name" "OJS_NATS_CA" "value" "/etc/ojs-nats/nats-ca/ca.crt") }}
{{- end }}
{{- $args := list "keys" "create" "--name" "ops" "--role" "admin" "--nats" (include "ojs.nats" $) "--namespace" $nats.namespace }}
{{- $container := dict "name" "ojs-key" "image" $image "args" $args "env" $env "volumeMounts" $mounts }}

  kubectl -n {{ .Release.Namespace }} run ojs-key --rm -i --restart=Never --image={{ $image }} \
    --overrides='{{ dict "spec" (dict "containers" (list $container) "volumes" $volumes) | toJson }}'
{{- else }}:

  kubectl -n {{ .Release.Namespace }} run ojs-key --rm -it --restart=Never --image={{ $image }} -- \
    keys create --name ops --role admin --nats '{{ $nats.url }}' --namespace {{ $nats.namespace }}
{{- end }}
{{- end }}

The dashboard:

  kubectl -n {{ .Release.Namespace }} port-forward svc/{{ .Release.Name }}-gateway 8080:{{ int .Values.gateway.service.port }}
{{- end }}
