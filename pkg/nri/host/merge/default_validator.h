// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Changes that plugins may not make on this node (NRI 0.10: the default validator).
struct DefaultValidatorOptions {
  bool reject_oci_hook_adjustment = false;
  // These three reject any change of the seccomp policy, if the container's own profile is
  // RuntimeDefault, Unconfined (or absent), or custom.
  bool reject_runtime_default_seccomp_adjustment = false;
  bool reject_unconfined_seccomp_adjustment = false;
  bool reject_custom_seccomp_adjustment = false;
  bool reject_namespace_adjustment = false;
  bool reject_sysctl_adjustment = false;  // removals included, as for namespaces
  // Containers are created only after these plugins have taken part: "logger" or "10-logger". A pod
  // names more in its annotation required-plugins.noderesource.dev: a list of names as YAML or
  // JSON. The suffix "/container.NAME" has precedence over "/pod", and that over no suffix.
  std::vector<std::string> required_plugins{};
  // If this annotation is set to true, a pod or container needs none of the required plugins; it
  // has the same suffixes as the annotation above. "": there is no such annotation.
  std::string tolerate_missing_plugins_annotation{};
};

// The changes that plugins want of a new container.
struct Proposal {
  const api::PodSandbox& pod;
  const api::Container& container;  // its id, name and seccomp profile
  const api::ContainerAdjustment& adjustment;
  // The owners of the changed fields; called only if a rejection names them.
  std::function<api::OwningPlugins()> owners;
};

// A host's built-in validator. Pure: it has no effect and never waits. Immutable, thread-safe.
class DefaultValidator {
 public:
  using Annotations = google::protobuf::Map<std::string, std::string>;

  explicit DefaultValidator(DefaultValidatorOptions options) : options_(std::move(options)) {}

  // Whether the container may be created like this. `present`: full names of the plugins that took
  // part, which are connected, and have answered if they are asked about creations (a host that
  // counts plugins without an answer, too, starts containers without required ones).
  // kFailedPrecondition: rejected; the message names plugins and their changes. kInvalidArgument:
  // an annotation that is malformed or longer than 16 KiB.
  Status Check(const Proposal& proposal, std::span<const std::string> present) const;
  // Whether a container with this name needs none of the required plugins, by its pod's
  // annotations. kInvalidArgument: the annotation is neither true nor false.
  StatusOr<bool> ToleratesMissing(const Annotations& of_pod, std::string_view container) const;

 private:
  Status CheckSeccomp(const Proposal& proposal) const;
  Status CheckRequired(const Proposal& proposal, std::span<const std::string> present) const;

  DefaultValidatorOptions options_;
};

}  // namespace resmgr::nri
