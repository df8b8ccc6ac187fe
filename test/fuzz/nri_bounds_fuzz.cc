// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include <google/protobuf/stubs/logging.h>

#include "pkg/api/nri.pb.h"
#include "pkg/nri/bounded_message.h"
#include "test/fuzz/checks.h"

namespace {

namespace nri_api = ::nri::pkg::api::v1alpha1;
using resmgr::fuzz::Check;

constexpr size_t kMost = 32;
// Bytes of one field once it is decoded, without its text. The largest message type has 400 bytes.
constexpr size_t kMostOfField = 1024;
// A message keeps the length of its text, and of packed numbers at most eight bytes for each.
constexpr size_t kMostOfByte = 16;

}  // namespace

// The first byte selects the type. A message with few fields, as they are counted on the wire,
// takes little memory; one that is refused takes none.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const google::protobuf::LogSilencer silent;
  const std::array<const google::protobuf::Message*, 4> types{
      &nri_api::CreateContainerResponse::default_instance(),
      &nri_api::SynchronizeRequest::default_instance(),
      &nri_api::ValidateContainerAdjustmentRequest::default_instance(),
      &nri_api::UpdateContainersRequest::default_instance()};
  if (size == 0) return 0;
  const google::protobuf::Message& type = *types.at(data[0] % types.size());
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const size_t count = resmgr::nri::CountFields(bytes, *type.GetDescriptor(), kMost);
  Check(count <= kMost + 1);
  Check(count == 0 || !bytes.empty());
  const std::unique_ptr<google::protobuf::Message> message(type.New());
  const resmgr::Status decoded = resmgr::nri::DecodeMessage(bytes, *message, kMost);
  if (count <= kMost) {
    Check(message->SpaceUsedLong() <= (count + 1) * kMostOfField + bytes.size() * kMostOfByte);
  } else if (bytes.size() / 2 > kMost) {
    Check(!decoded.ok() && message->ByteSizeLong() == 0);
  }
  return 0;
}
