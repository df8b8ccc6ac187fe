// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/handler_aliases.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "pkg/base/wire.h"
#include "pkg/cri/call_route.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/messages.h"

namespace resmgr {
namespace {

constexpr auto kNote = StateStore::PodNote::kHandler;

constexpr std::array kOfRuntimeService = {
    std::pair{std::string_view("RunPodSandbox"), HandlerUse::kNewSandbox},
    std::pair{std::string_view("CreateContainer"), HandlerUse::kNewContainer},
    std::pair{std::string_view("RemovePodSandbox"), HandlerUse::kRemovedSandbox},
    std::pair{std::string_view("PodSandboxStatus"), HandlerUse::kSandboxStatus},
    std::pair{std::string_view("ListPodSandbox"), HandlerUse::kSandboxList},
    std::pair{std::string_view("StreamPodSandboxes"), HandlerUse::kSandboxStream},
    std::pair{std::string_view("GetContainerEvents"), HandlerUse::kEvents},
    std::pair{std::string_view("Status"), HandlerUse::kHandlers},
};
constexpr std::array kOfImageService = {
    std::pair{std::string_view("PullImage"), HandlerUse::kImage},
    std::pair{std::string_view("ImageStatus"), HandlerUse::kImage},
    std::pair{std::string_view("RemoveImage"), HandlerUse::kImage},
    std::pair{std::string_view("ListImages"), HandlerUse::kImageFilter},
    std::pair{std::string_view("StreamImages"), HandlerUse::kImageFilter},
};

// Paths of fields in requests.
constexpr std::array<uint32_t, 1> kSandboxPath = {2};
constexpr std::array<uint32_t, 2> kImagePath = {1, 19};
constexpr std::array<uint32_t, 3> kImageFilterPath = {1, 1, 19};
constexpr std::array<uint32_t, 3> kContainerImagePath = {2, 2, 19};      // config.image
constexpr std::array<uint32_t, 4> kContainerMountsPath = {2, 7, 9, 19};  // config.mounts.image
// Paths of messages in replies.
constexpr std::array<uint32_t, 1> kStatusPath = {1};  // PodSandboxStatusResponse
constexpr std::array<uint32_t, 1> kInfoPath = {2};    // PodSandboxStatusResponse.info, a map
constexpr std::array<uint32_t, 1> kListedPath = {1};  // entries of lists
constexpr std::array<uint32_t, 1> kEventPath = {4};
constexpr uint32_t kHandlersField = 3;  // StatusResponse

constexpr uint32_t kIdField = 1;
constexpr uint32_t kHandlerOfSandbox = 2;  // RunPodSandboxRequest
constexpr uint32_t kHandlerOfStatus = 9;
constexpr uint32_t kHandlerOfListed = 7;
constexpr uint32_t kNameField = 1;  // in RuntimeHandler
constexpr uint32_t kKeyField = 1;   // in entries of maps
constexpr std::array<uint32_t, 1> kValuePath = {2};

// Returns an edit for a PodSandbox or PodSandboxStatus that has its handler in this field.
FieldEdit OfSandboxes(const HandlerAliases& aliases, uint32_t field) {
  return [&aliases, field](std::string_view sandbox) -> std::optional<std::string> {
    const std::string* const alias = aliases.AliasOf(TextOfField(sandbox, kIdField));
    if (alias == nullptr) return std::nullopt;
    return WithText(sandbox, field, *alias);
  };
}

std::optional<std::string> EditInfo(std::string_view entry, const std::string& alias) {
  if (TextOfField(entry, kKeyField) != "info") return std::nullopt;
  return EditFields(entry, kValuePath, [&alias](std::string_view json) {
    return WithJsonText(json, "runtimeHandler", alias);
  });
}

std::optional<std::string> EditStatus(std::string_view reply, const HandlerAliases& aliases) {
  const std::string_view status = TextOfField(reply, kStatusPath.front());
  const std::string* const alias = aliases.AliasOf(TextOfField(status, kIdField));
  if (alias == nullptr) return std::nullopt;
  std::optional<std::string> edited =
      EditFields(reply, kStatusPath, OfSandboxes(aliases, kHandlerOfStatus));
  if (!edited) return std::nullopt;
  std::optional<std::string> both = EditFields(
      *edited, kInfoPath, [alias](std::string_view entry) { return EditInfo(entry, *alias); });
  return both ? std::move(both) : std::move(edited);
}

// An alias gets the features of its handler. If the runtime has a handler with the alias's name, it
// is left out, since no pod can get it.
std::optional<std::string> EditHandlers(std::string_view reply, const HandlerAliases& aliases) {
  std::map<std::string_view, std::string_view> handlers;
  WireReader reader(reply);
  while (reader.Next()) {
    if (reader.field() == kHandlersField && reader.is_bytes())
      handlers.emplace(TextOfField(reader.bytes(), kNameField), reader.bytes());
  }
  if (reader.failed() || handlers.empty()) return std::nullopt;
  std::string out = WithoutFields(reply, [&aliases](const WireReader& field) {
                      return field.field() == kHandlersField && field.is_bytes() &&
                             aliases.table().contains(TextOfField(field.bytes(), kNameField));
                    }).value_or(std::string(reply));
  for (const auto& [alias, handler] : aliases.table()) {
    const auto found = handlers.find(handler);
    if (found == handlers.end()) continue;
    FieldWriter(out).Bytes(kHandlersField, WithText(found->second, kNameField, alias));
  }
  return out;
}

// The position after the closing quote of a text that begins at `at`; npos: there is none.
size_t EndOfText(std::string_view json, size_t at) {
  for (size_t i = at + 1; i < json.size(); ++i) {
    if (json[i] == '\\') {
      ++i;
    } else if (json[i] == '"') {
      return i + 1;
    }
  }
  return std::string_view::npos;
}

size_t SkipSpace(std::string_view json, size_t at) {
  while (at < json.size() && std::string_view(" \t\r\n").find(json[at]) != std::string_view::npos)
    ++at;
  return at;
}

}  // namespace

const std::string* HandlerAliases::RuntimesHandler(std::string_view handler) const {
  const auto found = table_.find(handler);
  return found == table_.end() ? nullptr : &found->second;
}

void HandlerAliases::Remember(StateStore* state) {
  state_ = state;
  if (state_ == nullptr) return;
  state_->ForEachNote(kNote, [this](std::string_view id, std::string_view alias) {
    const auto found = table_.find(alias);
    if (found != table_.end()) sandboxes_[std::string(id)] = {.alias = &found->first, .added = 0};
  });
  state_->RetainNotes(kNote, [this](std::string_view id) { return AliasOf(id) != nullptr; });
  while (sandboxes_.size() > kMostSandboxes)
    DropOldest();
  state_->Commit();
}

void HandlerAliases::Add(const PodSandboxId& id, std::string_view alias) {
  const auto found = table_.find(alias);
  if (found == table_.end() || id.empty()) return;
  sandboxes_[std::string(id.value())] = {.alias = &found->first, .added = ++now_};
  if (sandboxes_.size() > kMostSandboxes) DropOldest();
  if (state_ == nullptr) return;
  state_->PutNote(kNote, id, alias);
  state_->Commit();
}

void HandlerAliases::Remove(const PodSandboxId& id) {
  if (sandboxes_.erase(std::string(id.value())) == 0 || state_ == nullptr) return;
  state_->EraseNote(kNote, id);
  state_->Commit();
}

void HandlerAliases::DropOldest() {
  const auto oldest = std::ranges::min_element(
      sandboxes_, {}, [](const auto& entry) { return entry.second.added; });
  Remove(PodSandboxId(oldest->first));
}

const std::string* HandlerAliases::AliasOf(std::string_view id) const {
  const auto found = sandboxes_.find(id);
  return found == sandboxes_.end() ? nullptr : found->second.alias;
}

std::string HandlerAliases::HandlerOf(std::string_view id, std::string_view handler) const {
  const std::string* const alias = AliasOf(id);
  return alias == nullptr ? std::string(handler) : *alias;
}

void HandlerAliases::RetainListed(const std::set<std::string, std::less<>>& listed, Moment begin) {
  std::vector<PodSandboxId> gone;
  for (const auto& [id, sandbox] : sandboxes_) {
    if (sandbox.added <= begin && !listed.contains(id)) gone.emplace_back(id);
  }
  for (const PodSandboxId& id : gone)
    Remove(id);
}

HandlerUse HandlerUseOf(const Method& method) {
  const auto find = [&method](const auto& uses) {
    const auto* const it =
        std::ranges::find(uses, method.name, [](const auto& use) { return use.first; });
    return it == uses.end() ? HandlerUse::kNone : it->second;
  };
  switch (method.service) {
    case Service::kRuntime:
      return find(kOfRuntimeService);
    case Service::kImage:
      return find(kOfImageService);
    case Service::kOther:
      break;
  }
  return HandlerUse::kNone;
}

std::optional<std::string> WithRuntimesHandlers(HandlerUse use, std::string_view request,
                                                const HandlerAliases& aliases) {
  const FieldEdit edit = [&aliases](std::string_view handler) -> std::optional<std::string> {
    const std::string* const runtimes = aliases.RuntimesHandler(handler);
    return runtimes == nullptr ? std::nullopt : std::optional(*runtimes);
  };
  switch (use) {
    case HandlerUse::kNewSandbox:
      return EditFields(request, kSandboxPath, edit);
    case HandlerUse::kImage:
      return EditFields(request, kImagePath, edit);
    case HandlerUse::kImageFilter:
      return EditFields(request, kImageFilterPath, edit);
    case HandlerUse::kNewContainer: {
      std::optional<std::string> image = EditFields(request, kContainerImagePath, edit);
      std::optional<std::string> mounts =
          EditFields(image ? std::string_view(*image) : request, kContainerMountsPath, edit);
      return mounts ? std::move(mounts) : std::move(image);
    }
    default:
      return std::nullopt;
  }
}

std::optional<std::string> WithAliases(HandlerUse use, std::string_view reply,
                                       const HandlerAliases& aliases) {
  switch (use) {
    case HandlerUse::kSandboxStatus:
      return EditStatus(reply, aliases);
    case HandlerUse::kSandboxList:
    case HandlerUse::kSandboxStream:
      return EditFields(reply, kListedPath, OfSandboxes(aliases, kHandlerOfListed));
    case HandlerUse::kEvents:
      return EditFields(reply, kEventPath, OfSandboxes(aliases, kHandlerOfStatus));
    case HandlerUse::kHandlers:
      return EditHandlers(reply, aliases);
    default:
      return std::nullopt;
  }
}

std::optional<std::string> WithJsonText(std::string_view json, std::string_view key,
                                        std::string_view value) {
  int depth = 0;
  for (size_t at = 0; at < json.size();) {
    const char c = json[at];
    if (c == '{' || c == '[') ++depth;
    if (c == '}' || c == ']') --depth;
    if (c != '"') {
      ++at;
      continue;
    }
    const size_t end = EndOfText(json, at);
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view text = json.substr(at + 1, end - at - 2);
    at = SkipSpace(json, end);
    // A string with the member's name but without a colon behind it is a value, not a key.
    if (depth != 1 || text != key || at >= json.size() || json[at] != ':') continue;
    const size_t begin = SkipSpace(json, at + 1);
    if (begin >= json.size() || json[begin] != '"') return std::nullopt;
    const size_t value_end = EndOfText(json, begin);
    if (value_end == std::string_view::npos) return std::nullopt;
    std::string changed(json.substr(0, begin + 1));
    changed += value;
    changed += json.substr(value_end - 1);
    return changed;
  }
  return std::nullopt;
}

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
  // Only an empty request has no filter, so that its reply lists all sandboxes.
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
