// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// The annotation by which a pod names plugins that it needs besides those that are configured: a
// list as YAML or JSON of names, with or without an index (NRI 0.10). "/container.NAME" behind it
// counts before "/pod", and that before nothing.
inline constexpr std::string_view kRequiredPluginsAnnotation = "required-plugins.noderesource.dev";

// What plugins may not do, by the configuration of the node (NRI 0.10: the default validator).
struct DefaultValidatorOptions {
  bool reject_oci_hook_adjustment = false;
  // A policy of system calls, by the profile that the container has without it; one that has none
  // is unconfined.
  bool reject_runtime_default_seccomp_adjustment = false;
  bool reject_unconfined_seccomp_adjustment = false;
  bool reject_custom_seccomp_adjustment = false;
  bool reject_namespace_adjustment = false;
  bool reject_sysctl_adjustment = false;  // removals included, as of namespaces
  // Containers are created only where these have taken part: "logger" or "10-logger".
  std::vector<std::string> required_plugins{};
  // A pod or container where this annotation is true needs none; looked for as the one above. "":
  // there is none.
  std::string tolerate_missing_plugins_annotation{};
};

// What plugins want of a container that is created.
struct Proposal {
  const api::PodSandbox& pod;
  const api::Container& container;  // of it, id, name and seccomp profile
  const api::ContainerAdjustment& adjustment;
  // Which plugins set which fields; called only where a rejection has to name them.
  std::function<api::OwningPlugins()> owners;
};

// The validator that a host has of itself. Pure: no effect, no wait. Immutable, thread-safe.
class DefaultValidator {
 public:
  explicit DefaultValidator(DefaultValidatorOptions options) : options_(std::move(options)) {}

  // Whether the container may be created so. `present`: full names of the plugins that took part:
  // connected, and not passed over because they did not answer (a host that counts them, too,
  // starts containers without what is required). FailedPrecondition: rejected; the message names
  // plugins and what they did. InvalidArgument: an annotation that cannot be read, or is longer
  // than 16 KiB.
  Status Check(const Proposal& proposal, std::span<const std::string> present) const;

 private:
  Status CheckSeccomp(const Proposal& proposal) const;
  Status CheckRequired(const Proposal& proposal, std::span<const std::string> present) const;

  DefaultValidatorOptions options_;
};

}  // namespace resmgr::nri
