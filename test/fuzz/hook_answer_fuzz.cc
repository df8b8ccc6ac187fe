// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <google/protobuf/stubs/logging.h>

#include "pkg/hooks/hook_merge.h"

namespace {

namespace hooks = resmgr::hooks;
namespace api = ::runtime::v1alpha1;

// An answer is taken as a whole or not at all, and what it said once is no change the second time.
void Merge(hooks::AnswerStyle style, const api::ContainerResourceHookRequest& request,
           const api::ContainerResourceHookResponse& answer) {
  hooks::ContainerHookMerge merge(hooks::HookPoint::kPreCreateContainer, request);
  if (!merge.Add("first.json", style, answer).ok()) {
    if (!merge.changes().empty()) std::abort();
    return;
  }
  hooks::ContainerHookMerge again(hooks::HookPoint::kPreCreateContainer, merge.request());
  if (!again.Add("second.json", style, answer).ok() || !again.changes().empty()) std::abort();
  for (const auto& change : merge.changes().adjustment.Changes())
    if (merge.owners().Of(change) != "first.json") std::abort();
  if (!merge.owners().conflicts().empty()) std::abort();
}

}  // namespace

// The first byte is the length of the request, in steps of 8 bytes; the answer follows it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const google::protobuf::LogSilencer kQuiet;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t split = std::min<size_t>(size_t{data[0]} * 8, bytes.size());
  api::ContainerResourceHookRequest request;
  api::ContainerResourceHookResponse answer;
  if (!request.ParseFromString(std::string(bytes.substr(0, split))) ||
      !answer.ParseFromString(std::string(bytes.substr(split)))) {
    return 0;
  }
  Merge(hooks::AnswerStyle::kEcho, request, answer);
  Merge(hooks::AnswerStyle::kSparse, request, answer);
  return 0;
}
