// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/cri/call_route.h"
#include "pkg/cri/id_owners.h"
#include "pkg/cri/image_ids.h"
#include "pkg/log/log.h"

namespace resmgr {

class HandlerAliases;

// The runtimes behind a relay that has several, and the choice of one for each call. A pod sandbox
// is created by the runtime of its RuntimeClass handler; calls about the sandbox and its containers
// go to the same runtime. Loop's thread only.
class Backends {
 public:
  struct Backend {
    std::string name;  // for errors and logs
    std::string socket;
    std::vector<std::string> handlers{};  // names that clients use, with aliases
    std::string image_socket{};           // ImageService's socket; empty: `socket`
  };

  // The first is the default: it gets the handlers that no other has, and the calls that do not
  // concern a pod sandbox or container. `aliases` of their handlers outlive this object; nullptr:
  // there are none.
  explicit Backends(std::vector<Backend> backends, const HandlerAliases* aliases = nullptr);
  Backends(const Backends&) = delete;
  Backends& operator=(const Backends&) = delete;

  // Callers may keep pointers to the elements.
  const std::vector<Backend>& all() const { return backends_; }
  IdOwners& owners() { return owners_; }
  const IdOwners& owners() const { return owners_; }
  const HandlerAliases* aliases() const { return aliases_; }
  // The forms of image ids, learned from replies. Not const, since code with a const Backends also
  // learns from the replies that it reads.
  ImageIds& image_ids() const { return image_ids_; }

  // Calls of clients at one runtime, since the daemon's start.
  struct Calls {
    uint64_t ended = 0;
    uint64_t failed = 0;  // calls with an error, or that did not reach it
    // Pod sandboxes and containers of another runtime that this one claims.
    uint64_t refused_claims = 0;
  };
  void Count(size_t backend, bool ok) {
    ++calls_[backend].ended;
    if (!ok) ++calls_[backend].failed;
  }
  const Calls& calls(size_t backend) const { return calls_[backend]; }

  struct Choice {
    enum class Kind {
      kOne,
      kAll,
      kUnknownId,  // none of the listed runtimes had it
    };
    Kind kind = Kind::kOne;
    size_t backend = 0;
  };
  // kInvalidArgument: ids of several runtimes begin with the given one.
  StatusOr<Choice> Choose(const CallRoute& route, const RouteKeys& keys) const;

  // False if the runtime is known to have no pod sandboxes, and therefore needs no image now: a
  // kubelet asks for a container's image only after it has created the sandbox.
  bool MayHavePods(size_t backend) const {
    return !owners_.Listed(IdOwners::Kind::kPodSandbox, backend) ||
           owners_.Has(IdOwners::Kind::kPodSandbox, backend);
  }

  // The runtime for pod sandboxes of this handler.
  size_t OfHandler(std::string_view handler) const;
  // Finds a runtime by its name.
  std::optional<size_t> Find(std::string_view name) const;

  // Notes whether a runtime that took a question answered it in time; if not, it hangs, and calls
  // that do not need it do not wait for it. A runtime that is away does not count as hanging.
  void NoteAnswer(size_t backend, bool in_time) { hangs_[backend] = !in_time; }
  bool Hangs(size_t backend) const { return hangs_[backend]; }
  // Reports that a runtime is late with an answer. It is then asked a short question, which shows
  // whether it hangs.
  void NoteSilence(size_t backend) const {
    if (on_silence_) on_silence_(backend);
  }
  void OnSilence(std::function<void(size_t backend)> asks) { on_silence_ = std::move(asks); }

  // Whether a listed object is left out because another runtime has its id.
  bool IsOfOther(size_t backend, std::string_view pod_id) const {
    return owners_.IsOfOther(IdOwners::Kind::kPodSandbox, pod_id, backend);
  }
  bool IsOfOther(size_t backend, std::string_view pod_id, std::string_view container_id) const {
    return IsOfOther(backend, pod_id) ||
           owners_.IsOfOther(IdOwners::Kind::kContainer, container_id, backend);
  }

  // Whether an event's pod sandbox or container belongs to another runtime with the same id.
  bool IsEventOfOther(size_t backend, std::string_view id) const {
    return IsOfOther(backend, id) || owners_.IsOfOther(IdOwners::Kind::kContainer, id, backend);
  }

 private:
  void OnConflict(const IdOwners::Conflict& conflict);

  const std::vector<Backend> backends_;
  const HandlerAliases* const aliases_;
  std::vector<Calls> calls_;
  std::vector<bool> hangs_;
  std::function<void(size_t backend)> on_silence_;
  Logger& log_;
  IdOwners owners_;
  mutable ImageIds image_ids_;
};

// Learns a runtime's ids from its reply of ListPodSandbox or ListContainers without a filter.
// Containers in a pod sandbox of another runtime are ignored. kInvalidArgument: malformed protobuf,
// and nothing is learned.
Status LearnList(IdOwners& owners, IdOwners::Kind kind, size_t backend, std::string_view list,
                 IdOwners::ListBegin begin);

// Removes entries whose id belongs to another runtime from a reply of ListPodSandbox or
// ListContainers: clients know objects by id only, and would stop or remove the other runtime's
// container. nullopt: there is no such entry, or the reply is malformed.
std::optional<std::string> WithoutThoseOfOthers(const Backends& backends, IdOwners::Kind kind,
                                                size_t backend, std::string_view list);

}  // namespace resmgr
