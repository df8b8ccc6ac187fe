// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/cri/handler_edits.h"

namespace resmgr {

// One call whose messages name RuntimeClass handlers, where some of these are aliases: the runtime
// gets its own handlers, the client those that it named. Loop's thread only.
class AliasedCall {
 public:
  // nullptr: the call has nothing to do with handlers. `several`: there are several runtimes, whose
  // Status is merged with the aliases in it (reply_merge.h).
  static std::unique_ptr<AliasedCall> Begin(HandlerAliases& aliases, const Method& method,
                                            bool several);

  AliasedCall(HandlerAliases& aliases, HandlerUse use)
      : aliases_(aliases), use_(use), begin_(aliases.Now()) {}

  // The request has to be collected, and shown to OnRequest.
  bool ReadsRequest() const;
  // What the runtime gets in its place; nullopt: the same.
  std::optional<std::string> OnRequest(std::string_view request);

  // OnReply looks at the message.
  bool ReadsReply() const { return use_ == HandlerUse::kNewSandbox; }
  // The call was carried out.
  void OnReply(std::string_view message);

  // The messages of the reply become others.
  bool RewritesReply() const;
  // Each of them; nullopt: it stays.
  std::optional<std::string> Rewrite(std::string_view message);

 private:
  void NoteListed(std::string_view list);

  HandlerAliases& aliases_;
  const HandlerUse use_;
  const HandlerAliases::Moment begin_;
  std::string alias_;  // of the new sandbox
  PodSandboxId removed_;
  bool lists_all_ = false;
};

}  // namespace resmgr
