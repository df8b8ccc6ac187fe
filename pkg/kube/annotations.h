// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/string_map.h"

namespace resmgr {

// One annotation that applies to a container.
struct ScopedAnnotation {
  std::string_view key;  // as written on the pod, for messages
  std::string_view value;
  bool old_form = false;  // the value is for all containers, or a map from containers to values
};

// Finds the annotation of a pod with the value of `key` ("prefer-isolated-cpus") for one of its
// containers. The narrowest scope wins, whichever domain it is in; within a scope the first domain
// wins:
//   KEY.DOMAIN/container.NAME, then KEY.DOMAIN/pod, then KEY.DOMAIN
//   DOMAIN: cri-resource-manager.intel.com, then resource-policy.nri.io
// The old form of cri-resource-manager, cri-resource-manager.intel.com/KEY, comes last.
// ReadAnnotation (pkg/config/pod_annotation.h) interprets the value. Views refer to `annotations`.
std::optional<ScopedAnnotation> FindAnnotation(const StringMap& annotations, std::string_view key,
                                               std::string_view container_name);

// The change that gives the annotation this value for the container, as refusals propose it: "the
// annotation KEY.DOMAIN/pod: "false"". The key is as it is written on the pod; if it is not there,
// it is that for the container alone.
std::string AnnotationChange(const StringMap& annotations, std::string_view key,
                             std::string_view container_name, std::string_view value);

// The pod annotation of the webhook (pkg/model/resources_annotation.h).
inline constexpr std::string_view kResourcesAnnotation = "intel.com/resources";

// Whether policies or classes may read an annotation with this key, in any form. Facts about a
// container that are saved for a restart need no others.
bool IsForDecisions(std::string_view key);

// CRI-O's annotations of pods (its pkg/annotations/v2), which count with any runtime.

inline constexpr std::string_view kCpuSharedAnnotation = "cpu-shared.crio.io";

// The annotation KEY/CONTAINER, else KEY, as it is written on the pod.
std::optional<StringMap::value_type> FindCrioAnnotation(const StringMap& annotations,
                                                        std::string_view key,
                                                        std::string_view container);

// Whether a container with CPUs of its own is to use the shared CPUs as well
// ("cpu-shared.crio.io/CONTAINER: enable").
bool WantsSharedCpus(const StringMap& annotations, std::string_view container);
// Follows the reason of such a container's placement.
inline constexpr std::string_view kAndSharedNote = ", and shared CPUs by annotation";

// The boolean that an annotation's value means (ParseBool), also with the quotes of YAML around it
// and a comment of YAML behind it; nullopt for any other value.
std::optional<bool> BoolOfAnnotation(std::string_view value);

// Whether the value may be a map from containers to values. MistypedInMaps
// (pkg/config/pod_annotation.h) looks into maps.
bool MayBeMap(const ScopedAnnotation& annotation);

// An annotation that policies read and whose value may be a map from containers to values: one of
// the old form, or an affinity. nullopt for all others.
struct MapAnnotation {
  bool has_booleans = false;  // the values of the map are true or false
};
std::optional<MapAnnotation> AsMapAnnotation(std::string_view annotation);

// One sentence for each annotation in the domains of policies that has no effect, because its key
// or the part behind the domain is probably mistyped, or its value is neither true nor false where
// one of these is expected. A key that is not like any known one may belong to another program and
// is left out.
std::vector<std::string> MistypedAnnotations(const StringMap& annotations);

// The same for annotations of single containers. `containers` are the names of all containers that
// the pod has now. More may be created later, so only a name that resembles one of these is
// reported.
std::vector<std::string> MistypedContainers(const StringMap& annotations,
                                            const std::vector<std::string_view>& containers);

}  // namespace resmgr
