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

// Facts about a container and its pod from lists of its runtime, as far as decisions need them.
struct SavedOrigin {
  std::string runtime;  // by its name in the configuration
  Pod pod;              // id, uid, name, namespace, handler, overhead, annotations for policies
  std::string container_name;
  uint32_t attempt = 0;
  // The decided CPUs and memory nodes.
  std::optional<CpuSet> cpus;
  std::optional<NodeSet> mems;
};

// The views of an origin that is saved with the container itself.
struct OriginView {
  std::string_view runtime;
  const Pod& pod;
};

// Labels, and the annotations that policies read, as the client named them, where a stage changed
// them. Without a value: the client named none.
struct AskedTexts {
  using Texts = std::vector<std::pair<std::string, std::optional<std::string>>>;
  Texts labels{};
  Texts annotations{};

  bool empty() const { return labels.empty() && annotations.empty(); }
  // Replaces the runtime's reported values by these.
  void Restore(StringMap& reported_labels, StringMap& reported_annotations) const;

  friend bool operator==(const AskedTexts&, const AskedTexts&) = default;
};

// A saved placement: without the sets of CPUs and memory nodes, which the runtime reports.
struct SavedPlace {
  Placement placement;
  CpuSet shared_cpus;  // as SavedContainer::shared_cpus
};

// The request of a client's update whose outcome is not known, and the place that was decided for
// it. Older notes do not have the place.
struct AskedUpdate {
  LinuxResources requested;
  Requirements requirements;
  std::optional<SavedPlace> place{};
};

// The views of a request's texts that are saved with the container itself.
struct AskedView {
  const LinuxResources& requested;
  const Requirements& requirements;
  const Placement& placement;
};

// Facts about a container that are kept over restarts, since its runtime does not report them. Its
// CPUs and memory nodes come from the runtime.
struct SavedContainer {
  // Its exclusive CPUs, shares, quota, period, counted memory nodes, pool and reason; the sets of
  // CPUs and memory nodes are not kept.
  Placement placement;
  // The kubelet's request; the runtime reports the values as we changed them.
  LinuxResources requested;
  Requirements requirements;
  std::vector<LocalityHint> hints;
  // The class of its pod, used if the runtime does not report it; older notes lack it.
  std::optional<QosClass> qos;
  std::string needs_note;
  // The container's member of the same name (pkg/model/container.h); older notes lack it.
  bool cpus_bound = false;
  bool mems_bound = false;
  // With several runtimes: the pod's data while its runtime is away.
  std::optional<SavedOrigin> origin{};
  // The shared CPUs of a container that has exactly as many of them as it asks for: without this
  // note they could be taken for its exclusive CPUs. Else empty.
  CpuSet shared_cpus{};
  // Older notes do not have it.
  std::optional<NumbersSetLater> set_later{};
  std::optional<AskedUpdate> asked{};
  AskedTexts texts{};
  bool qos_derived = false;  // of its pod: Pod::qos_derived
  // The name that it was created with, where its runtime may rename it; else empty.
  std::string created_name{};
};

// Data that is saved with some containers only. Each pointer may be null, and its target outlives
// the call.
struct SavedExtras {
  const OriginView* origin = nullptr;
  const AskedView* asked = nullptr;
  const AskedTexts* texts = nullptr;
  bool qos_derived = false;
  std::string_view created_name{};
};

// The kept form: a protobuf message (pkg/api/state.proto). An older version ignores fields of a
// newer one. The same container always gives the same bytes. Appends to `out`.
void EncodeSaved(const Container& container, QosClass qos, std::string& out,
                 const SavedExtras& extras = {});
// InvalidArgument when it is not one.
StatusOr<SavedContainer> DecodeSaved(std::string_view bytes);

// The resources of a pod as a whole, where they were changed after its creation: overhead and
// resources of the pod (pkg/api/state.proto, StatedPod).
std::string EncodeStated(const Pod& pod);
// Puts these into the pod. InvalidArgument, with nothing changed: malformed bytes.
Status AddStated(std::string_view bytes, Pod& pod);

// The client's request for a pod sandbox of which a stage changed something: QoS class, cgroup
// parent and `texts` (pkg/api/state.proto, AskedPod).
std::string EncodeAsked(const Pod& asked, const AskedTexts& texts);
// Replaces the runtime's reported values by these. InvalidArgument, with nothing changed: malformed
// bytes.
Status RestoreAsked(std::string_view bytes, Pod& reported);

// A refusal of a container (pkg/api/state.proto, Refusal).
struct SavedRefusal {
  std::chrono::system_clock::time_point time{};  // in milliseconds
  PodSandboxId pod{};
  QosClass qos = QosClass::kBestEffort;
  Requirements requirements{};
  std::string reason{};
  std::string error{};
};
std::string EncodeRefusal(const SavedRefusal& refusal);
// InvalidArgument: the bytes are not a saved refusal.
StatusOr<SavedRefusal> DecodeRefusal(std::string_view bytes);

}  // namespace resmgr
