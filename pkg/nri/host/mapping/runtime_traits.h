// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "pkg/api/nri.pb.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Properties of a runtime that decide how plugins' changes are mapped.
struct RuntimeTraits {
  // The form in which it takes CDI devices.
  enum class Cdi { kNone, kAnnotation, kField };
  // The form in which a creation has a custom seccomp policy.
  enum class Seccomp {
    kFile,      // the name of a file of the node
    kText,      // the policy itself
    kPlainText  // the same without flags, default error number and listener, which are ignored
  };

  // The name of the API for messages.
  std::string_view api_name = "the CRI";
  // Fields that the API has but that are never written.
  std::span<const api::Field> not_written{};
  Cdi cdi = Cdi::kField;
  Seccomp seccomp = Seccomp::kFile;
  bool recursive_read_only = true;             // honours Mount.recursive_read_only
  bool announced_recursive_read_only = false;  // announced for the pod's handler
  bool non_recursive_mounts = false;           // a mount can exclude mounts below it
  bool without_rdt = false;                    // it refused a container because of its class
  bool cgroup_v2 = true;                       // the node's version of cgroups
  bool resource_limits = false;                // a creation can set limits of processes
  bool unsets_variables = false;               // a creation can unset variables of the image
  bool privileged_seccomp = true;              // a privileged container can have a seccomp policy
};

// Derives the properties from the answer to CRI Version. containerd has CDI devices since 1.7 and
// recursively read-only mounts since 2.0, CRI-O the former by annotation since 1.23 and by field
// since 1.27, the latter since 1.30 (their release notes). "docker" is the Docker API of any
// version: it has no CDI devices and no such mounts, but fields for memory.low and pids.max on both
// versions of cgroups; dockerd reads all of a seccomp policy since 23.0, and mounts are
// non-recursive since 19.03 (its release notes). Unknown runtimes count as new.
RuntimeTraits TraitsOf(std::string_view name, std::string_view version, bool cgroup_v2);

// TraitsOf for a pod of this handler; `handlers` are those that the runtime has announced.
RuntimeTraits TraitsFor(const RuntimeTraits& traits, std::span<const HandlerFeatures> handlers,
                        std::string_view handler);

// Whether this message is containerd's or CRI-O's refusal of the container of this name because
// there is no RDT for the class in its request.
bool SaysWithoutRdt(std::string_view message, std::string_view container,
                    std::string_view rdt_class);

// The reason why a request does not get this field, for messages.
std::string WhyNotWritten(const RuntimeTraits& traits, api::Field field);

}  // namespace resmgr::nri
