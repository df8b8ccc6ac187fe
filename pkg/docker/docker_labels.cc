// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/docker_labels.h"

#include <charconv>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/kube/qos.h"
#include "pkg/model/resources_annotation.h"
#include "pkg/sys/cgroups.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kType = "io.kubernetes.docker.type";
constexpr std::string_view kSandboxId = "io.kubernetes.sandbox.id";

std::string_view ValueOf(const StringMap& labels, std::string_view name) {
  const auto found = labels.find(name);
  return found == labels.end() ? std::string_view() : (*found).second;
}

}  // namespace

Identity ReadIdentity(const StringMap& labels, std::string_view name) {
  Identity read;
  std::vector<StringMap::value_type> plain;
  std::vector<StringMap::value_type> annotations;
  for (const auto& [key, value] : labels) {
    if (key.starts_with(kAnnotationPrefix)) {
      annotations.emplace_back(key.substr(kAnnotationPrefix.size()), value);
    } else {
      plain.emplace_back(key, value);
    }
  }
  read.labels = StringMap(plain);
  read.annotations = StringMap(annotations);
  const std::string_view type = ValueOf(labels, kType);
  const std::string_view sandbox = ValueOf(labels, kSandboxId);
  if (type == "podsandbox") {
    read.kind = Identity::Kind::kSandbox;
  } else if (!sandbox.empty()) {
    read.kind = Identity::Kind::kContainer;
  } else {
    return read;
  }
  read.pod_id = PodSandboxId(sandbox);
  read.container = ValueOf(labels, "io.kubernetes.container.name");
  read.pod.name = ValueOf(labels, "io.kubernetes.pod.name");
  read.pod.namespace_name = ValueOf(labels, "io.kubernetes.pod.namespace");
  read.pod.uid = PodUid(ValueOf(labels, "io.kubernetes.pod.uid"));
  const std::vector<std::string_view> parts = Split(name, '_');
  if ((parts.size() == 6 || parts.size() == 7) && parts[0] == "k8s") {
    if (read.container.empty()) read.container = parts[1];
    if (read.pod.name.empty()) read.pod.name = parts[2];
    if (read.pod.namespace_name.empty()) read.pod.namespace_name = parts[3];
    if (read.pod.uid.empty()) read.pod.uid = PodUid(parts[4]);
    std::from_chars(parts[5].data(), parts[5].data() + parts[5].size(), read.attempt);
  }
  if (read.kind == Identity::Kind::kSandbox) {
    read.pod.labels = read.labels;
    read.pod.annotations = read.annotations;
  }
  return read;
}

std::string WholeCgroup(std::string_view cgroup_parent) {
  // The root slice "-.slice" stays as it is, since it has no parent.
  const bool name = IsSlice(cgroup_parent) && !cgroup_parent.starts_with('-') &&
                    cgroup_parent.find('/') == std::string_view::npos;
  return name ? "/" + SlicePath(cgroup_parent) : std::string(cgroup_parent);
}

std::string CgroupForEngine(std::string_view whole, std::string_view before) {
  const bool slice = before.ends_with(".slice") && before.find('/') == std::string_view::npos;
  return std::string(slice ? whole.substr(whole.rfind('/') + 1) : whole);
}

void AddCgroup(std::string_view cgroup_parent, Pod& pod) {
  pod.cgroup_parent = WholeCgroup(cgroup_parent);
  SetQos(cgroup_parent, pod);
  if (!pod.uid.empty()) return;
  if (const auto cgroup = ParsePodCgroup(cgroup_parent)) pod.uid = cgroup->uid;
}

}  // namespace resmgr::docker
