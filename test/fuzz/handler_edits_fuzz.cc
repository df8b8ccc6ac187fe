// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <google/protobuf/util/message_differencer.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/handler_aliases.h"
#include "test/fuzz/checks.h"

namespace {

using google::protobuf::util::MessageDifferencer;
using resmgr::HandlerUse;
using resmgr::fuzz::HasUnknown;
using runtime::v1::ListPodSandboxResponse;
using runtime::v1::RunPodSandboxRequest;

void CheckRequest(const std::string& bytes, const resmgr::HandlerAliases& aliases) {
  RunPodSandboxRequest request;
  if (!request.ParseFromString(bytes) || HasUnknown(request)) return;
  RunPodSandboxRequest edited;
  const auto sent = resmgr::WithRuntimesHandlers(HandlerUse::kNewSandbox, bytes, aliases);
  if (!edited.ParseFromString(sent.value_or(bytes))) std::abort();
  if (request.runtime_handler() == "pinned") request.set_runtime_handler("runc");
  if (!MessageDifferencer::Equals(edited, request)) std::abort();
}

void CheckList(const std::string& bytes, const resmgr::HandlerAliases& aliases) {
  ListPodSandboxResponse list;
  if (!list.ParseFromString(bytes)) return;
  for (runtime::v1::PodSandbox& item : *list.mutable_items()) {
    if (HasUnknown(item)) return;
    if (item.id() == "sandbox") item.set_runtime_handler("pinned");
  }
  ListPodSandboxResponse edited;
  const auto shown = resmgr::WithAliases(HandlerUse::kSandboxList, bytes, aliases);
  if (!edited.ParseFromString(shown.value_or(bytes))) std::abort();
  if (!MessageDifferencer::Equals(edited, list)) std::abort();
}

}  // namespace

// Edited messages have the same meaning except for the handlers, and malformed messages do no harm.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer kQuiet;
  resmgr::HandlerAliases aliases(resmgr::HandlerAliases::Table{{"pinned", "runc"}});
  aliases.Add(resmgr::PodSandboxId("sandbox"), "pinned");
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  CheckRequest(bytes, aliases);
  CheckList(bytes, aliases);
  for (int use = 0; use <= static_cast<int>(HandlerUse::kHandlers); ++use) {
    (void)resmgr::WithAliases(HandlerUse(use), bytes, aliases);
    (void)resmgr::WithRuntimesHandlers(HandlerUse(use), bytes, aliases);
  }
  return 0;
}
