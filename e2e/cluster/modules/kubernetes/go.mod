module reveal.dev/e2e/kubernetes

go 1.24.0

require (
	go.etcd.io/etcd/server/v3 v3.6.4
	k8s.io/kubernetes v1.34.4
)
