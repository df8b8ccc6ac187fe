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

// One call whose messages name RuntimeClass handlers, some of which are aliases: the runtime gets
// its own handlers, the client the ones that it named. Loop's thread only.
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
