// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/message_differencer.h>

#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/testing/messages.h"
#include "test/fuzz/checks.h"

namespace {

using google::protobuf::util::MessageDifferencer;
using resmgr::nri::AdjustmentMerge;
using resmgr::nri::Given;
using resmgr::nri::OwnedField;
namespace api = resmgr::nri::api;
using resmgr::fuzz::Check;

bool Same(const google::protobuf::Message& a, const google::protobuf::Message& b) {
  return MessageDifferencer::Equals(a, b);
}

// Replies, each with its length in front; the last one has the remaining bytes.
std::vector<api::CreateContainerResponse> Replies(std::string_view bytes) {
  std::vector<api::CreateContainerResponse> replies;
  while (!bytes.empty() && replies.size() < 3) {
    const size_t size = std::min<size_t>(static_cast<uint8_t>(bytes[0]), bytes.size() - 1);
    api::CreateContainerResponse reply;
    if (reply.ParseFromArray(bytes.data() + 1, static_cast<int>(size))) {
      replies.push_back(std::move(reply));
    }
    bytes.remove_prefix(size + 1);
  }
  return replies;
}

// A variable that is set has an owner, and one that was removed for good is not shown.
void CheckEnvironment(const AdjustmentMerge& merge) {
  const std::vector<OwnedField> owned = merge.owned(merge.pristine().id());
  for (const api::KeyValue& variable : merge.adjustment().env()) {
    const bool marked = variable.key().starts_with('-');
    const std::string name = variable.key().substr(marked ? 1 : 0);
    const auto owner = std::ranges::find_if(owned, [&](const OwnedField& field) {
      return field.field == api::FIELD_ENV && field.key == name;
    });
    Check(owner != owned.end());
    Check(marked || !owner->removed);
    const auto& shown = merge.container().env();
    const auto found = std::ranges::count_if(
        shown, [&](const std::string& entry) { return entry.substr(0, entry.find('=')) == name; });
    Check(found == (owner->removed ? 0 : 1));
  }
}

api::Container Pristine() {
  api::Container container;
  container.set_id("c");
  container.add_args("sh");
  container.add_env("A=1");
  container.add_mounts()->set_destination("/m");
  container.mutable_linux()->add_devices()->set_path("/dev/d");
  return container;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  [[maybe_unused]] static auto* const protobuf_log = google::protobuf::SetLogHandler(nullptr);
  constexpr std::array<std::string_view, 3> kPlugins{"10-a", "20-b", "30-c"};
  const auto replies = Replies({reinterpret_cast<const char*>(data), size});
  AdjustmentMerge merge(Given(Pristine()));
  for (size_t i = 0; i < replies.size(); ++i) {
    const api::ValidateContainerAdjustmentRequest before = merge.Validation();
    const api::Container shown = merge.container();
    if (merge.Add(kPlugins[i], replies[i]).ok()) {
      CheckEnvironment(merge);
      // Alone it is in no conflict either.
      AdjustmentMerge alone(Given(Pristine()));
      Check(alone.Add(kPlugins[i], replies[i]).ok());
    } else {
      Check(Same(before, merge.Validation()) && Same(shown, merge.container()));
    }
    Check(Same(merge.pristine().Make(), Pristine()));
  }
  return 0;
}
