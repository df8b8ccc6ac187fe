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

// The calls that stages may look at, by their CRI names. Front doors of other protocols translate
// their own calls. Everything else is kOther and passes.
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
  std::optional<Pod> pod;  // from sandbox_config; used if the sandbox is unknown
  std::string name;
  uint32_t attempt = 0;
  StringMap labels;
  StringMap annotations;
  bool has_resources = false;  // the request has linux.resources, even empty ones
  LinuxResources resources;
  // Resources of the whole pod, from sandbox_config: newer than those of the sandbox's creation.
  std::optional<LinuxResources> pod_resources{};
  std::vector<LocalityHint> hints{};  // only if the policy wants them
  // False: the request names neither devices nor CDI devices. This is usual, and saves reading the
  // details to find claims, which are CDI devices.
  bool may_have_devices = true;
};

// The changes in an UpdateContainerResources request.
struct ContainerUpdate {
  bool has_linux = false;  // the request has Linux resources, even empty ones
  LinuxResources resources;
  StringMap annotations{};
};

// Resources of the whole pod that an UpdatePodSandboxResources request sets.
struct PodUpdate {
  LinuxResources overhead;
  LinuxResources resources;
};

// One request as stages see it, whatever protocol it came by. The front door fills in the parts
// that the resource manager needs, and reads other parts when a stage asks for them: most requests
// are seen by the resource manager alone, and most of their bytes are never read. Loop's thread
// only.
class Request {
 public:
  // The front door's message.
  class Source {
   public:
    // Each of these reads the message anew. nullopt or false: the message lacks the part or cannot
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

  // The container of requests about an existing one, as the client wrote it: runtimes accept any
  // unambiguous beginning of an id.
  ContainerId container_id;
  // The sandbox of CreateContainer, and of requests about an existing sandbox, as the client wrote
  // it.
  PodSandboxId pod_id;
  // RunPodSandbox: the client's count of the pod's sandboxes.
  uint32_t pod_attempt = 0;
  // Files in the request's `unified` that correspond to fields, or determine where the container
  // may run (pkg/model/unified_files.h).
  std::vector<std::string> files;
  // Set for CreateContainer, UpdateContainerResources, RunPodSandbox and UpdatePodSandboxResources.
  std::variant<std::monostate, CreateRequest, ContainerUpdate, Pod, PodUpdate> body;

  // The request of CreateContainer; nullptr for other operations, and if the request cannot be read
  // any more.
  const CreateRequest* create();
  // As create(), but the caller may move the request away: it is read again for a later stage. Only
  // for CreateContainer.
  CreateRequest& TakeCreate() {
    taken_ = true;
    return std::get<CreateRequest>(body);
  }
  // The pod sandbox in a CreateContainer request.
  std::optional<Pod> ReadPod() { return source_ == nullptr ? std::nullopt : source_->ReadPod(); }
  // Reads the parts that have not been read yet; after Close nothing more is read. Broken parts
  // stay empty. The result is valid as long as the request.
  const ContainerDetails& Details(DetailSet parts);
  // As Details, but the result may be kept: it does not change when other parts are read later.
  std::shared_ptr<const ContainerDetails> KeepDetails(DetailSet parts);

  // Called when the front door gives the message away: nothing is read from it afterwards.
  void Close() { source_ = nullptr; }

 private:
  const Operation operation_;
  Source* source_;
  bool taken_ = false;
  DetailSet read_;
  std::shared_ptr<ContainerDetails> details_;
};

}  // namespace resmgr
