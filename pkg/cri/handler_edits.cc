// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/handler_edits.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "pkg/base/field_writer.h"
#include "pkg/base/wire.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/json_member.h"

namespace resmgr {

namespace {

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
constexpr std::array<uint32_t, 1> kInfoPath = {2};    // the same: entries of a map
constexpr std::array<uint32_t, 1> kListedPath = {1};  // entries of lists
constexpr std::array<uint32_t, 1> kEventPath = {4};
constexpr uint32_t kHandlersField = 3;  // StatusResponse

constexpr uint32_t kIdField = 1;
constexpr uint32_t kHandlerOfStatus = 9;
constexpr uint32_t kHandlerOfListed = 7;
constexpr uint32_t kNameField = 1;  // in RuntimeHandler
constexpr uint32_t kKeyField = 1;   // in entries of maps
constexpr std::array<uint32_t, 1> kValuePath = {2};

// Edits a PodSandbox or PodSandboxStatus whose handler is in this field.
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

// The reply without these handlers; all other fields stay byte by byte.
std::string WithoutHandlers(std::string_view reply, const HandlerAliases& aliases) {
  std::string out;
  std::string_view rest = reply;
  WireReader reader(reply);
  while (reader.Next()) {
    const std::string_view field = rest.substr(0, rest.size() - reader.rest().size());
    rest = reader.rest();
    const bool is_handler = reader.field() == kHandlersField && reader.is_bytes();
    if (is_handler && aliases.table().contains(TextOfField(reader.bytes(), kNameField))) continue;
    out += field;
  }
  return out;
}

// An alias has the features of its handler. It hides a runtime's handler of the same name, which no
// pod can get.
std::optional<std::string> EditHandlers(std::string_view reply, const HandlerAliases& aliases) {
  std::map<std::string_view, std::string_view> handlers;
  WireReader reader(reply);
  while (reader.Next()) {
    if (reader.field() == kHandlersField && reader.is_bytes())
      handlers.emplace(TextOfField(reader.bytes(), kNameField), reader.bytes());
  }
  if (reader.failed() || handlers.empty()) return std::nullopt;
  std::string out = WithoutHandlers(reply, aliases);
  for (const auto& [alias, handler] : aliases.table()) {
    const auto found = handlers.find(handler);
    if (found == handlers.end()) continue;
    FieldWriter(out).Bytes(kHandlersField, WithText(found->second, kNameField, alias));
  }
  return out;
}

}  // namespace

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

}  // namespace resmgr
