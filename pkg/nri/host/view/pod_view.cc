// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/pod_view.h"

#include "pkg/base/utf8.h"
#include "pkg/nri/host/view/resource_view.h"

namespace resmgr::nri {

void CopyNamespaces(const std::vector<LinuxNamespace>& from,
                    google::protobuf::RepeatedPtrField<api::LinuxNamespace>& to) {
  to.Clear();
  for (const LinuxNamespace& item : from) {
    api::LinuxNamespace& added = *to.Add();
    added.set_type(Utf8Repaired(item.type));
    added.set_path(Utf8Repaired(item.path));
  }
}

api::PodSandbox ToPodSandbox(const Pod& pod) {
  api::PodSandbox out;
  out.set_id(Utf8Repaired(pod.id.value()));
  out.set_name(Utf8Repaired(pod.name));
  out.set_uid(Utf8Repaired(pod.uid.value()));
  out.set_namespace_(Utf8Repaired(pod.namespace_name));
  out.set_runtime_handler(Utf8Repaired(pod.runtime_handler));
  CopyStrings(pod.labels, *out.mutable_labels());
  CopyStrings(pod.annotations, *out.mutable_annotations());
  api::LinuxPodSandbox& linux = *out.mutable_linux();
  linux.set_cgroup_parent(Utf8Repaired(pod.cgroup_parent));
  *linux.mutable_pod_overhead() = ToNriResources(pod.overhead);
  *linux.mutable_pod_resources() = ToNriResources(pod.resources);
  return out;
}

api::PodSandbox ToPodSandbox(const Pod& pod, const SandboxFacts& facts) {
  api::PodSandbox out = ToPodSandbox(pod);
  AddFacts(facts, out);
  return out;
}

void AddFacts(const SandboxFacts& facts, api::PodSandbox& pod) {
  if (facts.pid != 0) pod.set_pid(facts.pid);
  if (!facts.ips.empty()) {
    pod.clear_ips();
    for (const std::string& ip : facts.ips)
      pod.add_ips(Utf8Repaired(ip));
  }
  api::LinuxPodSandbox& linux = *pod.mutable_linux();
  if (!facts.cgroups_path.empty()) linux.set_cgroups_path(Utf8Repaired(facts.cgroups_path));
  if (!facts.namespaces.empty()) CopyNamespaces(facts.namespaces, *linux.mutable_namespaces());
}

}  // namespace resmgr::nri
