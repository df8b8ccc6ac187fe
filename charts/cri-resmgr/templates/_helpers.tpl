{{- define "cri-resmgr.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end }}

{{/* Labels of an object: (list . COMPONENT). */}}
{{- define "cri-resmgr.labels" -}}
{{- $root := index . 0 -}}
{{ include "cri-resmgr.selector" . }}
app.kubernetes.io/version: {{ $root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ $root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" $root.Chart.Name $root.Chart.Version }}
{{- end }}

{{/* Those that select pods: they never change. */}}
{{- define "cri-resmgr.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ include "cri-resmgr.name" $root }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* The image of a component: (list . COMPONENT). */}}
{{- define "cri-resmgr.image" -}}
{{- $root := index . 0 -}}
{{- $image := (index $root.Values (index . 1)).image -}}
{{- with $root.Values.image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ default $root.Chart.AppVersion $root.Values.image.tag }}{{ end -}}
{{- end }}

{{- define "cri-resmgr.pullSecrets" -}}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- end }}

{{/* Where pods of a component may run, and how important they are: its values. */}}
{{- define "cri-resmgr.scheduling" -}}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What speaks through sockets of root needs root's user id, and nothing else of root: a component's values. */}}
{{- define "cri-resmgr.socketUser" -}}
runAsUser: 0
runAsGroup: 0
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
seccompProfile:
  type: RuntimeDefault
{{- with .seLinuxOptions }}
seLinuxOptions:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Flags that the daemon has in both modes. */}}
{{- define "cri-resmgr.daemonArgs" -}}
- -metrics-address={{ eq .Values.daemon.metrics.listen "loopback" | ternary "127.0.0.1" "" }}:{{ .Values.daemon.metrics.port }}
- -logger-level={{ .Values.daemon.logLevel }}
- -logger-format={{ .Values.daemon.logFormat }}
{{- range .Values.daemon.extraArgs }}
- {{ . | quote }}
{{- end }}
{{- end }}

{{/* A GET of the daemon's metrics port: (list . PATH). */}}
{{- define "cri-resmgr.daemonGet" -}}
{{- $daemon := (index . 0).Values.daemon -}}
httpGet:
  {{- if eq $daemon.metrics.listen "loopback" }}
  host: 127.0.0.1
  {{- end }}
  path: {{ index . 1 }}
  port: {{ $daemon.metrics.port }}
{{- end }}

{{- define "cri-resmgr.webhookName" -}}
{{ include "cri-resmgr.name" . }}-webhook
{{- end }}

{{- define "cri-resmgr.webhookSecret" -}}
{{ default (include "cri-resmgr.webhookName" .) .Values.webhook.certificate.secretName }}
{{- end }}
