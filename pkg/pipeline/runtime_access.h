// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/string_map.h"
#include "pkg/model/container_details.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr {

// A Linux namespace of a pod sandbox or a container, as the OCI runtime specification names it
// ("network"). No path: a new one.
struct LinuxNamespace {
  std::string type;
  std::string path;
};

// What a runtime tells of a pod sandbox that exists. What it does not tell is empty or 0.
struct SandboxFacts {
  Pod pod;
  uint32_t attempt = 0;
  bool ready = false;
  uint32_t pid = 0;
  std::vector<std::string> ips;
  std::string cgroups_path;
  std::vector<LinuxNamespace> namespaces;
};

// What a runtime tells of a container that exists. Times are nanoseconds since 1970.
struct ContainerFacts {
  RuntimeContainer container;
  uint32_t pid = 0;
  int64_t created_at = 0;
  int64_t started_at = 0;
  int64_t finished_at = 0;
  int32_t exit_code = 0;
  std::string reason;
  std::string message;
  std::string image;  // as the request named it
  std::string cgroups_path;
  std::vector<LinuxNamespace> namespaces;
  ContainerDetails details;  // of the OCI specification that is in force
  // Of the request that made it, without what the image and the runtime add. Only containerd tells
  // it.
  std::optional<Environment> requested_environment{};
};

// What an image says of the containers that are made of it.
struct ImageFacts {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  Environment environment;
  std::string digest;  // "NAME@sha256:...", where it has one
};

// A change of a running container's resources. What is not set stays.
struct ResourceChange {
  LinuxResources resources;
  std::optional<int64_t> memory_swap_limit{};  // bytes, of memory and swap together
  StringMap unified{};                         // cgroup v2 file to value
};

// What a runtime announces of one of its handlers of pods ("" is the default one).
struct HandlerFeatures {
  std::string name;
  bool recursive_read_only = false;  // mounts
};

// What stages may ask of the runtime behind a front door, by a connection of their own.
// Asynchronous: `done` runs on the loop's thread, never inside the call itself, and not after the
// end of this object. Unavailable: no connection. DeadlineExceeded: no answer in time. NotFound: it
// does not exist (any more). Loop's thread only.
class RuntimeAccess {
 public:
  template <typename Result>
  using Done = std::function<void(StatusOr<Result>)>;

  struct Version {
    std::string name;                         // "containerd"
    std::string version;                      // "1.6.20~ds1"
    std::vector<HandlerFeatures> handlers{};  // that it announces
  };
  struct Everything {
    std::vector<SandboxFacts> sandboxes;
    std::vector<ContainerFacts> containers;
    // With several runtimes: ids of pod sandboxes and containers whose runtime could not be asked.
    // Earlier knowledge about them still holds.
    std::vector<std::string> unlisted{};
  };

  virtual ~RuntimeAccess() = default;

  virtual void AskVersion(Done<Version> done) = 0;
  virtual void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) = 0;
  virtual void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) = 0;
  virtual void InspectImage(std::string_view reference, Done<ImageFacts> done) = 0;
  // All sandboxes and containers with their verbose status; those that end meanwhile are left out.
  virtual void InspectAll(Done<Everything> done) = 0;

  virtual void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                               std::function<void(Status)> done) = 0;
  virtual void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                             std::function<void(Status)> done) = 0;
  virtual void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) = 0;
  virtual void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) = 0;
};

}  // namespace resmgr
