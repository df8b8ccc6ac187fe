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
// the runtime's. Which alias a pod sandbox was made with only we know, and the state over restarts:
// without it, the sandbox has the runtime's handler. Loop's thread only.
class HandlerAliases {
 public:
  // By alias: the runtime's handler, "" for its default one. No handler of a value is an alias.
  using Table = std::map<std::string, std::string, std::less<>>;
  // More sandboxes than any node has; of more, those that were made first count as ones of the
  // runtime's handler.
  static constexpr size_t kMostSandboxes = 16'384;

  // Not empty.
  explicit HandlerAliases(Table table) : table_(std::move(table)) {}
  HandlerAliases(const HandlerAliases&) = delete;
  HandlerAliases& operator=(const HandlerAliases&) = delete;

  const Table& table() const { return table_; }
  // nullptr: the handler is no alias.
  const std::string* RuntimesHandler(std::string_view handler) const;

  // Keeps in the state, which may end only after a call with nullptr, what it learns from now on,
  // and takes what an earlier run kept there. An alias that is not in the table any more is none.
  void Remember(StateStore* state);

  // The sandbox was made with this alias. Written at once, as the runtime's answer is to follow.
  void Add(const PodSandboxId& id, std::string_view alias);
  void Remove(const PodSandboxId& id);
  // nullptr: it was made with a handler of the runtime.
  const std::string* AliasOf(std::string_view id) const;
  // What the client named; `handler` is what the runtime says of this sandbox.
  std::string HandlerOf(std::string_view id, std::string_view handler) const;
  size_t sandboxes() const { return sandboxes_.size(); }

  // A moment, to tell sandboxes from before it.
  using Moment = uint64_t;
  Moment Now() const { return now_; }
  // These are all sandboxes that there are, by a list begun at that moment: forgets others.
  void RetainListed(const std::set<std::string, std::less<>>& listed, Moment begin);

 private:
  struct Sandbox {
    const std::string* alias;  // a key of the table
    Moment added;
  };

  void DropOldest();

  const Table table_;
  StateStore* state_ = nullptr;
  absl::flat_hash_map<std::string, Sandbox, TextHash, std::equal_to<>> sandboxes_;
  Moment now_ = 0;
};

}  // namespace resmgr
