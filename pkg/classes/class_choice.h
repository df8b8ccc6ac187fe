// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/model/pod.h"

namespace resmgr {

// The class of one kind that a container is to have. A value.
struct ClassChoice {
  std::string name{};    // "": none
  std::string source{};  // "annotation KEY", "pool NAME", "QoS class Burstable"; "": no class
  std::string note{};    // annotations that have no effect, with the reason; usually empty
  bool by_pod = false;   // the pod's annotations ask for the class

  friend bool operator==(const ClassChoice&, const ClassChoice&) = default;
};

// A class of the configuration. The name refers to the configuration's text.
struct KnownClass {
  std::string_view name{};
  // Annotations for the whole pod, or for one container, may not choose it.
  bool denies_pod_annotation = false;
  bool denies_container_annotation = false;
};

// The container, as far as it is known.
struct ClassQuestion {
  const Pod& pod;
  std::string_view container;        // its name
  const StringMap& annotations;      // its own ones
  std::string_view pool{};           // of the policy
  std::string_view class_of_pool{};  // "": none
  bool by_qos = false;               // a class with the name of its QoS class is the default
};

// Chooses a class of the kind "rdt", "blockio", "cpu" or "scheduling", by the first of these that
// names one:
//   1. annotations for the container alone, then for the pod, where the pod's namespace may choose
//      this class: KEY as in docs/annotations.md ("rdtclass.resource-policy.nri.io/container.N"),
//      what containerd and CRI-O know ("io.kubernetes.cri.rdt-class"), and their forms for pods
//      ("rdt.resources.beta.kubernetes.io/container.N", ".../pod")
//   2. the policy's choice for the pool
//   3. the pod's QoS class, if `by_qos` and there is such a class
// An empty annotation chooses none. InvalidArgument: the annotation that counts names an unknown
// class (unless the configuration says to ignore that), or one that denies such annotations; the
// message names the annotation and the known classes. Pure.
StatusOr<ClassChoice> ChooseClass(std::string_view kind, const ClassQuestion& about,
                                  const std::vector<KnownClass>& known,
                                  const ClassesConfig& config);

// The class without annotations, by 2 and 3.
ClassChoice DefaultClass(const ClassQuestion& about, const std::vector<KnownClass>& known);

// A class that a pod's annotations ask for. A value.
struct AskedClass {
  std::string_view kind{};  // as ClassPart::kind
  std::string name{};
  std::string source{};  // the annotations

  friend bool operator==(const AskedClass&, const AskedClass&) = default;
};

// A kind of classes for which the machine lacks support. A value.
struct AbsentKind {
  std::string reason{};
  std::vector<std::string> but{};  // classes of this kind that the machine still supports
};

using AbsentKinds = std::map<std::string, AbsentKind, std::less<>>;

}  // namespace resmgr
