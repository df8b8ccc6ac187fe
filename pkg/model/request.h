// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/string_map.h"
#include "pkg/model/container.h"
#include "pkg/model/container_details.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The calls that stages may look at, under the names that the CRI has for them. Front doors of
// other protocols map theirs onto these. Everything else is kOther and passes.
enum class Operation {
  kOther,
  kRunPodSandbox,
  kStopPodSandbox,
  kRemovePodSandbox,
  kCreateContainer,
  kStartContainer,
  kStopContainer,
  kRemoveContainer,
  kUpdateContainerResources,
  kContainerStatus,
  kUpdatePodSandboxResources,
};

// A set of operations. A value type, immutable.
class OperationSet {
 public:
  constexpr OperationSet() = default;
  constexpr OperationSet(std::initializer_list<Operation> operations) {
    for (const Operation operation : operations)
      bits_ |= Bit(operation);
  }
  // All but kOther.
  static constexpr OperationSet All() {
    OperationSet all;
    all.bits_ = ~Bit(Operation::kOther);
    return all;
  }

  constexpr bool contains(Operation operation) const { return (bits_ & Bit(operation)) != 0; }
  constexpr OperationSet operator|(OperationSet other) const {
    other.bits_ |= bits_;
    return other;
  }

 private:
  static constexpr uint32_t Bit(Operation operation) {
    return uint32_t{1} << static_cast<uint32_t>(operation);
  }

  uint32_t bits_ = 0;
};

// The part of a CreateContainer request that the resource manager needs.
struct CreateRequest {
  PodSandboxId pod_id;
  std::optional<Pod> pod;  // from sandbox_config, used when the sandbox is not known here
  std::string name;
  uint32_t attempt = 0;
  StringMap labels;
  StringMap annotations;
  bool has_resources = false;  // the request carries linux.resources, if only empty ones
  LinuxResources resources;
  // Resources of the pod as a whole, from sandbox_config: newer than those of its sandbox's
  // creation.
  std::optional<LinuxResources> pod_resources{};
  std::vector<LocalityHint> hints{};  // when the policy wants them
  // False: the request names neither devices nor CDI devices. Most do not, and their details need
  // not be read for claims, which are CDI devices.
  bool may_have_devices = true;
};

// The changes in an UpdateContainerResources request.
struct ContainerUpdate {
  bool has_linux = false;  // it carries Linux resources, if only empty ones
  LinuxResources resources;
  StringMap annotations{};
};

// Resources of the pod as a whole that an UpdatePodSandboxResources request sets.
struct PodUpdate {
  LinuxResources overhead;
  LinuxResources resources;
};

// One request as stages see it, whatever protocol it came by. The front door fills in what the
// resource manager needs and reads the rest when a stage asks for it: most requests are seen by the
// resource manager alone, and most of their bytes are never looked at. Loop's thread only.
class Request {
 public:
  // The front door's message.
  class Source {
   public:
    // These read the message anew each time. nullopt or false: the message lacks the part or cannot
    // be read.
    virtual bool ReadCreate(CreateRequest& create) = 0;
    virtual std::optional<Pod> ReadPod() = 0;  // without id
    virtual bool ReadDetails(DetailSet parts, ContainerDetails& details) = 0;

   protected:
    ~Source() = default;
  };

  // `source` is used until Close.
  Request(Operation operation, Source& source) : operation_(operation), source_(&source) {}
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  Operation operation() const { return operation_; }

  // For requests about an existing container. Runtimes take any beginning of an id that is
  // unambiguous; this is what the client wrote.
  ContainerId container_id;
  // For CreateContainer and requests about an existing pod sandbox; written the same way.
  PodSandboxId pod_id;
  // RunPodSandbox: the client's count of the pod's sandboxes.
  uint32_t pod_attempt = 0;
  // Files in the request's `unified` that have the meaning of fields, or that determine where the
  // container may run (pkg/model/unified_files.h).
  std::vector<std::string> files;
  // CreateContainer, UpdateContainerResources, RunPodSandbox, UpdatePodSandboxResources; nothing
  // for the others.
  std::variant<std::monostate, CreateRequest, ContainerUpdate, Pod, PodUpdate> body;

  // The request of CreateContainer; nullptr for other operations and if it cannot be read any more.
  const CreateRequest* create();
  // The same, but the caller may move it away: it is read anew for a stage that asks for it later.
  // Only for CreateContainer.
  CreateRequest& TakeCreate() {
    taken_ = true;
    return std::get<CreateRequest>(body);
  }
  // The pod sandbox in a CreateContainer request.
  std::optional<Pod> ReadPod() { return source_ == nullptr ? std::nullopt : source_->ReadPod(); }
  // Parts of these that are not read yet are read now; nothing more after Close. Broken parts stay
  // empty. Valid as long as the request.
  const ContainerDetails& Details(DetailSet parts);
  // As Details, for keeping: parts that are read later are not added to it.
  std::shared_ptr<const ContainerDetails> KeepDetails(DetailSet parts);

  // The front door gives the message away.
  void Close() { source_ = nullptr; }

 private:
  const Operation operation_;
  Source* source_;
  bool taken_ = false;
  DetailSet read_;
  std::shared_ptr<ContainerDetails> details_;
};

}  // namespace resmgr
