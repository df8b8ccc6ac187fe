// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/qos.h"

#include <algorithm>
#include <array>
#include <string>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"

namespace resmgr {

std::string_view ToString(QosClass qos) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "Guaranteed";
    case QosClass::kBurstable:
      return "Burstable";
    case QosClass::kBestEffort:
      return "BestEffort";
  }
  return "unknown";
}

namespace {

constexpr std::string_view kRoot = "kubepods";
constexpr std::string_view kSystem = "system";
constexpr std::string_view kPod = "pod";
constexpr std::string_view kSlice = ".slice";

// Removes and returns the part after the last separator (all of it if there is none).
std::string_view TakeLast(std::string_view& path, char separator) {
  const size_t at = path.rfind(separator);
  const std::string_view last = at == std::string_view::npos ? path : path.substr(at + 1);
  path = at == std::string_view::npos ? "" : path.substr(0, at);
  return last;
}

bool IsUid(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return IsLetterOrDigit(c) || c == '-' || c == '_';
  });
}

// Parses names separated by `separator`: any names, then kubepods, perhaps "system", perhaps the
// class, and pod<UID>.
std::optional<PodCgroup> ParseNames(std::string_view names, char separator) {
  std::string_view uid = TakeLast(names, separator);
  if (!uid.starts_with(kPod)) return std::nullopt;
  uid.remove_prefix(kPod.size());
  if (!IsUid(uid)) return std::nullopt;

  PodCgroup pod{QosClass::kGuaranteed, PodUid(uid)};
  std::string_view parent = TakeLast(names, separator);
  if (parent == "burstable" || parent == "besteffort") {
    pod.qos = parent == "burstable" ? QosClass::kBurstable : QosClass::kBestEffort;
    parent = TakeLast(names, separator);
  }
  if (parent == kSystem) parent = TakeLast(names, separator);
  if (parent != kRoot) return std::nullopt;
  return pod;
}

}  // namespace

std::optional<PodCgroup> ParsePodCgroup(std::string_view cgroup_parent) {
  while (cgroup_parent.ends_with('/'))
    cgroup_parent.remove_suffix(1);
  if (!cgroup_parent.ends_with(kSlice)) return ParseNames(cgroup_parent, '/');

  // The name of a systemd slice repeats the names of all its parents.
  std::string_view slice = TakeLast(cgroup_parent, '/');
  slice.remove_suffix(kSlice.size());
  std::optional<PodCgroup> pod = ParseNames(slice, '-');
  if (!pod) return std::nullopt;
  std::string uid(pod->uid.value());
  std::replace(uid.begin(), uid.end(), '_', '-');
  pod->uid = PodUid(uid);
  return pod;
}

}  // namespace resmgr
