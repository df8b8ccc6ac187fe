// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// Facts about a container and its pod from lists of its runtime, as far as decisions need them, for
// the time when that runtime is away.
struct SavedOrigin {
  std::string runtime;  // its name in the configuration
  // id, uid, name, namespace, handler, overhead, labels, annotations for decisions
  Pod pod;
  std::string container_name;
  StringMap container_labels{};
  uint32_t attempt = 0;
  // The decided CPUs and memory nodes.
  std::optional<CpuSet> cpus;
  std::optional<NodeSet> mems;
};

// The part of an origin that is saved with the container; refers to the pod.
struct OriginView {
  std::string_view runtime;
  const Pod& pod;
};

// The client's values of labels and annotations that a stage changed; of annotations only those
// that policies and classes read. Without a value: the client's request did not have the key.
struct AskedTexts {
  using Texts = std::vector<std::pair<std::string, std::optional<std::string>>>;
  Texts labels{};
  Texts annotations{};

  bool empty() const { return labels.empty() && annotations.empty(); }
  // Puts these values back into what the runtime reported.
  void Restore(StringMap& reported_labels, StringMap& reported_annotations) const;

  friend bool operator==(const AskedTexts&, const AskedTexts&) = default;
};

// A saved placement, without the sets of CPUs and memory nodes: the runtime reports these.
struct SavedPlace {
  Placement placement;
  CpuSet shared_cpus;  // as SavedContainer::shared_cpus
};

// The request of a client's update whose outcome is not known, and the place that was decided for
// it.
struct AskedUpdate {
  LinuxResources requested;
  Requirements requirements;
  SavedPlace place{};
};

// The part of an open update that is saved with the container.
struct AskedView {
  const LinuxResources& requested;
  const Requirements& requirements;
  const Placement& placement;
};

// Facts about a container that are saved for restarts, since its runtime does not report them. Its
// CPUs and memory nodes come from the runtime.
struct SavedContainer {
  // Its exclusive CPUs, shares, quota, period, counted memory nodes, pool and reason, but not the
  // sets of CPUs and memory nodes.
  Placement placement;
  // The kubelet's request: the runtime only reports the values that the daemon made of it.
  LinuxResources requested;
  Requirements requirements;
  std::vector<LocalityHint> hints;
  // The class of its pod, used if the runtime does not report it.
  QosClass qos = QosClass::kBestEffort;
  std::string needs_note;
  // As Container::cpus_bound (pkg/model/container.h).
  bool cpus_bound = false;
  bool mems_bound = false;
  // With several runtimes: the pod's data while its runtime is away.
  std::optional<SavedOrigin> origin{};
  // The shared CPUs of a container if their number is the number that it asks for: without this
  // they could be mistaken for exclusive CPUs. Else empty.
  CpuSet shared_cpus{};
  NumbersSetLater set_later{};
  std::optional<AskedUpdate> asked{};
  AskedTexts texts{};
  bool qos_derived = false;  // Pod::qos_derived of its pod
  // The container's name at its creation, if its runtime may rename it; else empty.
  std::string created_name{};
};

// Data that only some containers have. Each pointer may be null, and its target must outlive the
// call.
struct SavedExtras {
  const OriginView* origin = nullptr;
  const AskedView* asked = nullptr;
  const AskedTexts* texts = nullptr;
  bool qos_derived = false;
  std::string_view created_name{};
};

// Appends the saved form to `out`: a protobuf message (pkg/api/state.proto). Older versions of the
// daemon ignore fields that they do not know. The same container always gives the same bytes.
void EncodeSaved(const Container& container, QosClass qos, std::string& out,
                 const SavedExtras& extras = {});
// InvalidArgument: the bytes are not a saved container.
StatusOr<SavedContainer> DecodeSaved(std::string_view bytes);

// The saved form of the overhead and the resources of a pod as a whole, if they were changed after
// its creation (pkg/api/state.proto, StatedPod).
std::string EncodeStated(const Pod& pod);
// Puts the saved values into the pod. InvalidArgument, with nothing changed: malformed bytes.
Status AddStated(std::string_view bytes, Pod& pod);

// The saved form of the client's request for a pod sandbox that a stage changed: QoS class, cgroup
// parent and `texts` (pkg/api/state.proto, AskedPod).
std::string EncodeAsked(const Pod& asked, const AskedTexts& texts);
// Puts the saved values in place of the runtime's reported ones. InvalidArgument, with nothing
// changed: malformed bytes.
Status RestoreAsked(std::string_view bytes, Pod& reported);

// A refusal of a container (pkg/api/state.proto, Refusal).
struct SavedRefusal {
  std::chrono::system_clock::time_point time{};  // saved in milliseconds
  PodSandboxId pod{};
  QosClass qos = QosClass::kBestEffort;
  Requirements requirements{};
  std::string reason{};
  std::string error{};
  // The place that the container has; empty in records of older daemons.
  std::optional<CpuSet> cpus{};
  std::optional<NodeSet> mems{};
  CpuSet exclusive{};
};
std::string EncodeRefusal(const SavedRefusal& refusal);
// InvalidArgument: the bytes are not a saved refusal.
StatusOr<SavedRefusal> DecodeRefusal(std::string_view bytes);

}  // namespace resmgr
