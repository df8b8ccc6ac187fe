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

// A Linux namespace of a pod sandbox or a container, by its name in the OCI runtime specification
// ("network"). An empty path: a new namespace.
struct LinuxNamespace {
  std::string type;
  std::string path;
};

// A runtime's facts about an existing pod sandbox. Unknown ones are empty or 0.
struct SandboxFacts {
  Pod pod;
  // The runtime has listed the sandbox but not answered for its status: only what lists tell of
  // `pod`, `attempt` and `ready` is known.
  bool status_missing = false;
  uint32_t attempt = 0;
  bool ready = false;
  uint32_t pid = 0;
  std::vector<std::string> ips;
  std::string cgroups_path;
  std::vector<LinuxNamespace> namespaces;
};

// A runtime's facts about an existing container. Times are nanoseconds since 1970.
struct ContainerFacts {
  RuntimeContainer container;
  // The runtime has listed the container but not answered for its status: all but `container` is
  // unknown.
  bool status_missing = false;
  uint32_t pid = 0;
  int64_t created_at = 0;
  int64_t started_at = 0;
  int64_t finished_at = 0;
  int32_t exit_code = 0;
  std::string reason;
  std::string message;
  std::string image;  // as written in the request
  std::string cgroups_path;
  std::vector<LinuxNamespace> namespaces;
  ContainerDetails details;  // from the OCI specification in force
  // The environment of the creating request, without additions by the image and the runtime. Only
  // containerd reports it.
  std::optional<Environment> requested_environment{};
};

// Facts about an image for containers that use it.
struct ImageFacts {
  std::vector<std::string> entrypoint;
  std::vector<std::string> command;
  Environment environment;
  std::string digest;  // "NAME@sha256:...", if it has one
};

// A change of a running container's resources. Unset values stay unchanged.
struct ResourceChange {
  LinuxResources resources;
  std::optional<int64_t> memory_swap_limit{};  // bytes, memory and swap together
  StringMap unified{};                         // cgroup v2 file to value
};

// The features that the runtime has announced for one of its pod handlers ("" is the default one).
struct HandlerFeatures {
  std::string name;
  bool recursive_read_only = false;  // pods of this handler can have recursively read-only mounts
};

// Queries and updates that stages may send to the runtime behind a front door, over their own
// connection. Asynchronous: `done` runs on the loop's thread, never inside the call itself, and not
// after the end of this object. kUnavailable: no connection. kDeadlineExceeded: no answer in time.
// kNotFound: the object does not exist (any more). Loop's thread only.
class RuntimeAccess {
 public:
  template <typename Result>
  using Done = std::function<void(StatusOr<Result>)>;

  struct Version {
    std::string name;                         // "containerd"
    std::string version;                      // "1.6.20~ds1"
    std::vector<HandlerFeatures> handlers{};  // announced ones
  };
  struct Everything {
    std::vector<SandboxFacts> sandboxes;
    std::vector<ContainerFacts> containers;
    // With several runtimes: ids of pod sandboxes and containers whose runtime could not be asked.
    // Earlier knowledge about them remains valid.
    std::vector<std::string> unlisted{};
  };

  virtual ~RuntimeAccess() = default;

  virtual void AskVersion(Done<Version> done) = 0;
  virtual void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) = 0;
  virtual void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) = 0;
  // The image as the runtime of this pod sandbox has it.
  virtual void InspectImage(const PodSandboxId& pod, std::string_view reference,
                            Done<ImageFacts> done) = 0;
  // Returns all sandboxes and containers with their verbose status, except those that end
  // meanwhile.
  virtual void InspectAll(Done<Everything> done) = 0;

  virtual void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                               std::function<void(Status)> done) = 0;
  virtual void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                             std::function<void(Status)> done) = 0;
  virtual void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) = 0;
  virtual void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) = 0;
};

}  // namespace resmgr
