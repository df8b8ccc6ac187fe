// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "pkg/api/nri.pb.h"
#include "pkg/pipeline/runtime_access.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// What a runtime makes of requests, as far as what plugins want depends on it.
struct RuntimeTraits {
  // By what it learns of CDI devices.
  enum class Cdi { kNone, kAnnotation, kField };
  // How a creation brings a seccomp policy of its own.
  enum class Seccomp {
    kFile,      // the name of a file of the node
    kText,      // the policy itself
    kPlainText  // the same without flags, default error number and listener, which are not used
  };

  // The API of the requests, as messages call it.
  std::string_view api_name = "the CRI";
  // What the API has fields for that requests do not get.
  std::span<const api::Field> not_written{};
  Cdi cdi = Cdi::kField;
  Seccomp seccomp = Seccomp::kFile;
  bool recursive_read_only = true;             // honours Mount.recursive_read_only
  bool announced_recursive_read_only = false;  // the runtime says so of the pod's handler
  bool non_recursive_mounts = false;           // a mount can leave out what is mounted below it
  bool without_rdt = false;                    // it has refused a container for its class
  bool cgroup_v2 = true;                       // of the node
  bool resource_limits = false;                // a creation has limits of processes
  bool unsets_variables = false;               // a creation can unset variables of the image
  bool privileged_seccomp = true;              // a privileged container can have a seccomp policy
};

// By what CRI Version says. containerd has CDI devices since 1.7 and recursively read-only mounts
// since 2.0, CRI-O the former by annotation since 1.23 and by field since 1.27, the latter since
// 1.30 (their release notes). "docker" is the Docker API of any version: it has neither, and fields
// for memory.low and pids.max on each version of cgroups; dockerd reads all of a seccomp policy
// since 23.0, and mounts are non-recursive since 19.03 (its release notes). What is not known
// counts as new.
RuntimeTraits TraitsOf(std::string_view name, std::string_view version, bool cgroup_v2);

// The same for a pod of this handler: `handlers` is what the runtime has announced.
RuntimeTraits TraitsFor(const RuntimeTraits& traits, std::span<const HandlerFeatures> handlers,
                        std::string_view handler);

// Whether containerd or CRI-O, which refuses the container of this name with this message, says
// that it has no RDT for the class that was sent for it.
bool SaysWithoutRdt(std::string_view message, std::string_view container,
                    std::string_view rdt_class);

// Why a request does not get this field, for messages.
std::string WhyNotWritten(const RuntimeTraits& traits, api::Field field);

}  // namespace resmgr::nri
