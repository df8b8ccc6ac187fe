// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "pkg/base/ids.h"
#include "pkg/cri/method_table.h"
#include "pkg/state/state_store.h"

namespace resmgr {

// RuntimeClass handlers that clients name and the runtime does not have: an alias stands for one of
// the runtime's handlers. Only this object, and the saved state after a restart, knows a pod
// sandbox's alias: without it the sandbox has the runtime's handler. Loop's thread only.
class HandlerAliases {
 public:
  // The runtime's handler by alias, "" for its default one. Values are never aliases.
  using Table = std::map<std::string, std::string, std::less<>>;
  // Limit of remembered sandboxes, more than any node has. Above it the oldest ones are forgotten,
  // and clients see the runtime's handler for them.
  static constexpr size_t kMostSandboxes = 16'384;

  // `table` must not be empty.
  explicit HandlerAliases(Table table) : table_(std::move(table)) {}
  HandlerAliases(const HandlerAliases&) = delete;
  HandlerAliases& operator=(const HandlerAliases&) = delete;

  const Table& table() const { return table_; }
  // nullptr: the handler is not an alias.
  const std::string* RuntimesHandler(std::string_view handler) const;

  // Saves new aliases in the state and loads those of an earlier run; an alias that is not in the
  // table any more is ignored. The state must live until a call with nullptr.
  void Remember(StateStore* state);

  // Notes the alias of a new sandbox and saves it at once, before the client gets the runtime's
  // answer.
  void Add(const PodSandboxId& id, std::string_view alias);
  void Remove(const PodSandboxId& id);
  // nullptr: the sandbox was created with a handler of the runtime.
  const std::string* AliasOf(std::string_view id) const;
  // The handler that the client named; `handler` is the one that the runtime reports.
  std::string HandlerOf(std::string_view id, std::string_view handler) const;
  size_t sandboxes() const { return sandboxes_.size(); }

  // A point in time, to tell sandboxes that are older than a list from newer ones.
  using Moment = uint64_t;
  Moment Now() const { return now_; }
  // Forgets sandboxes that are missing in `listed`, a complete list begun at `begin`.
  void RetainListed(const std::set<std::string, std::less<>>& listed, Moment begin);

 private:
  struct Sandbox {
    const std::string* alias;  // points to a key of the table
    Moment added;
  };

  void DropOldest();

  const Table table_;
  StateStore* state_ = nullptr;
  absl::flat_hash_map<std::string, Sandbox, TextHash, std::equal_to<>> sandboxes_;
  Moment now_ = 0;
};

// Finds RuntimeClass handlers in messages of runtime.v1 and runtime.v1alpha2. Replaces the client's
// names by the runtime's in requests, and the reverse in replies. All other bytes stay; nullopt: no
// change. Pure functions.

// The role of handlers in a call.
enum class HandlerUse : uint8_t {
  kNone,
  kNewSandbox,      // RunPodSandboxRequest.runtime_handler
  kNewContainer,    // CreateContainerRequest: ImageSpec.runtime_handler of the image and of mounts
  kImage,           // PullImage, ImageStatus, RemoveImage: ImageSpec.runtime_handler
  kImageFilter,     // ListImages, StreamImages: ImageSpec.runtime_handler in ImageFilter
  kRemovedSandbox,  // RemovePodSandbox names no handler; its sandbox's alias is forgotten
  kSandboxStatus,   // PodSandboxStatus.runtime_handler in the reply, and in its verbose info
  kSandboxList,     // PodSandbox.runtime_handler in the reply of ListPodSandbox
  kSandboxStream,   // PodSandbox.runtime_handler in the replies of StreamPodSandboxes
  kEvents,          // ContainerEventResponse.pod_sandbox_status in GetContainerEvents
  kHandlers,        // StatusResponse.runtime_handlers
};
HandlerUse HandlerUseOf(const Method& method);

// A request with aliases replaced by the runtime's handlers.
std::optional<std::string> WithRuntimesHandlers(HandlerUse use, std::string_view request,
                                                const HandlerAliases& aliases);

// A message of a reply with the aliases that clients named. Verbose info is edited in containerd's
// form: a member `runtimeHandler` in the JSON text of `info`.
std::optional<std::string> WithAliases(HandlerUse use, std::string_view reply,
                                       const HandlerAliases& aliases);

// The JSON text with another string as the value of this member of its outermost object; every
// other byte stays. nullopt: there is no such member, or its value is not a string. `key` and
// `value` must not need escapes. Takes time in proportion to the text. Pure function.
std::optional<std::string> WithJsonText(std::string_view json, std::string_view key,
                                        std::string_view value);

// One call whose messages name RuntimeClass handlers. If the client names an alias, the runtime
// gets its own handler, and the client gets the alias back. Loop's thread only.
class AliasedCall {
 public:
  // nullptr: the call does not concern handlers. `several`: there are several runtimes, whose
  // Status is merged with the aliases (reply_merge.h).
  static std::unique_ptr<AliasedCall> Begin(HandlerAliases& aliases, const Method& method,
                                            bool several);

  AliasedCall(HandlerAliases& aliases, HandlerUse use)
      : aliases_(aliases), use_(use), begin_(aliases.Now()) {}

  // Whether the request must be collected for OnRequest.
  bool ReadsRequest() const;
  // The request for the runtime; nullopt: unchanged.
  std::optional<std::string> OnRequest(std::string_view request);

  // Whether OnReply needs the message.
  bool ReadsReply() const { return use_ == HandlerUse::kNewSandbox; }
  // Called when the call was carried out.
  void OnReply(std::string_view message);

  // Whether the reply's messages are rewritten.
  bool RewritesReply() const;
  // Called for each message of the reply; nullopt: unchanged.
  std::optional<std::string> Rewrite(std::string_view message);

 private:
  void NoteListed(std::string_view list);

  HandlerAliases& aliases_;
  const HandlerUse use_;
  const HandlerAliases::Moment begin_;
  std::string alias_;  // alias of the new sandbox
  PodSandboxId removed_;
  bool lists_all_ = false;
};

}  // namespace resmgr
