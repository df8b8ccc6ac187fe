// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include <absl/container/flat_hash_map.h>

#include "pkg/base/ids.h"
#include "pkg/base/text_hash.h"
#include "pkg/state/state_store.h"

namespace resmgr {

// RuntimeClass handlers that clients name and the runtime does not have: an alias stands for one of
// the runtime's handlers. Only this object, and the saved state after a restart, knows a pod
// sandbox's alias: without it the sandbox has the runtime's handler. Loop's thread only.
class HandlerAliases {
 public:
  // The runtime's handler by alias, "" for its default one. Values are never aliases.
  using Table = std::map<std::string, std::string, std::less<>>;
  // More sandboxes than any node has; above this limit the oldest ones count as sandboxes of the
  // runtime's handler.
  static constexpr size_t kMostSandboxes = 16'384;

  // `table` must not be empty.
  explicit HandlerAliases(Table table) : table_(std::move(table)) {}
  HandlerAliases(const HandlerAliases&) = delete;
  HandlerAliases& operator=(const HandlerAliases&) = delete;

  const Table& table() const { return table_; }
  // nullptr: the handler is not an alias.
  const std::string* RuntimesHandler(std::string_view handler) const;

  // Saves new aliases in the state, which must not end before a call with nullptr, and loads those
  // of an earlier run. An alias that is not in the table any more is ignored.
  void Remember(StateStore* state);

  // Notes the alias of a new sandbox. Saved at once, since the runtime's answer follows.
  void Add(const PodSandboxId& id, std::string_view alias);
  void Remove(const PodSandboxId& id);
  // nullptr: it was created with a handler of the runtime.
  const std::string* AliasOf(std::string_view id) const;
  // The handler that the client named; `handler` is the one that the runtime reports.
  std::string HandlerOf(std::string_view id, std::string_view handler) const;
  size_t sandboxes() const { return sandboxes_.size(); }

  // A point in time, to distinguish older sandboxes.
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

}  // namespace resmgr
