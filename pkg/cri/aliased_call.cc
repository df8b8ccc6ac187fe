// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/aliased_call.h"

#include "pkg/cri/call_route.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/messages.h"

namespace resmgr {

namespace {

constexpr uint32_t kHandlerOfSandbox = 2;  // RunPodSandboxRequest

}  // namespace

std::unique_ptr<AliasedCall> AliasedCall::Begin(HandlerAliases& aliases, const Method& method,
                                                bool several) {
  const HandlerUse use = HandlerUseOf(method);
  if (use == HandlerUse::kNone || (several && use == HandlerUse::kHandlers)) return nullptr;
  return std::make_unique<AliasedCall>(aliases, use);
}

bool AliasedCall::ReadsRequest() const {
  switch (use_) {
    case HandlerUse::kNewSandbox:
    case HandlerUse::kNewContainer:
    case HandlerUse::kImage:
    case HandlerUse::kImageFilter:
    case HandlerUse::kRemovedSandbox:
    case HandlerUse::kSandboxList:
      return true;
    default:
      return false;
  }
}

std::optional<std::string> AliasedCall::OnRequest(std::string_view request) {
  if (use_ == HandlerUse::kNewSandbox) {
    const std::string_view handler = TextOfField(request, kHandlerOfSandbox);
    if (aliases_.RuntimesHandler(handler) != nullptr) alias_ = handler;
  }
  if (use_ == HandlerUse::kRemovedSandbox)
    removed_ = PodSandboxId(DecodeId(request).value_or(std::string_view()));
  // Any filter, also an empty one, makes the request longer.
  if (use_ == HandlerUse::kSandboxList) lists_all_ = request.empty();
  return WithRuntimesHandlers(use_, request, aliases_);
}

void AliasedCall::OnReply(std::string_view message) {
  if (!alias_.empty())
    aliases_.Add(PodSandboxId(DecodeId(message).value_or(std::string_view())), alias_);
  if (!removed_.empty()) aliases_.Remove(removed_);
}

bool AliasedCall::RewritesReply() const {
  switch (use_) {
    case HandlerUse::kSandboxStatus:
    case HandlerUse::kSandboxList:
    case HandlerUse::kSandboxStream:
    case HandlerUse::kEvents:
    case HandlerUse::kHandlers:
      return true;
    default:
      return false;
  }
}

std::optional<std::string> AliasedCall::Rewrite(std::string_view message) {
  if (lists_all_) NoteListed(message);
  return WithAliases(use_, message, aliases_);
}

void AliasedCall::NoteListed(std::string_view list) {
  if (aliases_.sandboxes() == 0) return;
  const auto ids = ReadListedIds(list);
  if (!ids.ok()) return;
  aliases_.RetainListed({ids->begin(), ids->end()}, begin_);
}

}  // namespace resmgr
