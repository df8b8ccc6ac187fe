// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/config/nri_config.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// The changes that plugins want of a new container.
struct Proposal {
  const api::PodSandbox& pod;
  const api::Container& container;  // its id, name and seccomp profile
  const api::ContainerAdjustment& adjustment;
  // The owners of the changed fields; called only if a rejection names them.
  std::function<api::OwningPlugins()> owners;
};

// A host's built-in validator (NRI 0.10: the default validator), which rejects what is configured.
// The three keys of seccomp reject any change of the policy, if the container's own profile is
// RuntimeDefault, Unconfined (or absent), or custom; removals of namespaces and sysctls are
// rejected, too. Pure: it has no effect and never waits. Immutable, thread-safe.
class DefaultValidator {
 public:
  using Annotations = google::protobuf::Map<std::string, std::string>;

  // Containers are created only after the `required` plugins have taken part: "logger" or
  // "10-logger". A pod names more in its annotation required-plugins.noderesource.dev: a list of
  // names as YAML or JSON. The suffix "/container.NAME" has precedence over "/pod", and that over
  // no suffix; the annotation that tolerates missing plugins has the same suffixes.
  explicit DefaultValidator(NriValidatorConfig config, std::vector<std::string> required = {})
      : config_(std::move(config)), required_(std::move(required)) {}

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

  const NriValidatorConfig config_;
  const std::vector<std::string> required_;
};

}  // namespace resmgr::nri
