// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/classes_config.h"
#include "pkg/model/pod.h"

namespace resmgr {

// The class of one kind that is chosen for a container. A value type.
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
  // Annotations for the whole pod, or for one container, may not choose this class.
  bool denies_pod_annotation = false;
  bool denies_container_annotation = false;
};

// The facts about a container by which its class is chosen.
struct ClassQuestion {
  const Pod& pod;
  std::string_view container;        // the container's name
  const StringMap& annotations;      // the container's own annotations
  std::string_view pool{};           // the pool that the policy chose
  std::string_view class_of_pool{};  // "": none
  bool by_qos = false;               // if a class is named like its QoS class, that is the default
};

// Chooses a class of the kind "rdt", "blockio", "cpu" or "scheduling", by the first of these that
// names one:
//   1. annotations for the container alone, then for the pod, where the pod's namespace may choose
//      this class: KEY as in docs/annotations.md ("rdtclass.resource-policy.nri.io/container.N"),
//      what containerd and CRI-O know ("io.kubernetes.cri.rdt-class"), and their forms for pods
//      ("rdt.resources.beta.kubernetes.io/container.N", ".../pod")
//   2. the policy's choice for the pool
//   3. the pod's QoS class, if `by_qos` and there is such a class
// An empty annotation chooses none. Where there are no classes, an annotation that runtimes read,
// too, is left to the runtime unless the namespace may choose. InvalidArgument: the annotation that
// counts names an unknown class (unless the configuration says to ignore that), or one that denies
// such annotations; the message names the annotation and the known classes. Pure.
StatusOr<ClassChoice> ChooseClass(std::string_view kind, const ClassQuestion& about,
                                  const std::vector<KnownClass>& known,
                                  const ClassesConfig& config);

// The class that ChooseClass chooses without annotations: by 2 and 3.
ClassChoice DefaultClass(const ClassQuestion& about, const std::vector<KnownClass>& known);

// "there are: A, B", for the end of a message about an unknown name; "there are none". `name` is a
// member of the elements.
template <typename Element, typename Name>
std::string ThereAre(const std::vector<Element>& all, Name Element::*name) {
  std::vector<std::string_view> names;
  std::ranges::transform(all, std::back_inserter(names), name);
  return names.empty() ? "there are none" : fmt::format("there are: {}", fmt::join(names, ", "));
}

// A class that a pod's annotations ask for. A value type.
struct AskedClass {
  std::string_view kind{};  // as ClassPart::kind
  std::string name{};
  std::string source{};  // the annotations

  friend bool operator==(const AskedClass&, const AskedClass&) = default;
};

// A kind of classes for which the machine lacks support. A value type.
struct AbsentKind {
  std::string reason{};
  std::vector<std::string> but{};  // classes of this kind that the machine supports nevertheless
};

using AbsentKinds = std::map<std::string, AbsentKind, std::less<>>;

}  // namespace resmgr
