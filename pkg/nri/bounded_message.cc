// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/bounded_message.h"

#include <algorithm>
#include <utility>

#include <google/protobuf/descriptor.h>

#include "pkg/base/wire.h"

namespace resmgr::nri {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

// Bytes of the shortest field: a tag and a length or a number.
constexpr size_t kShortestField = 2;
// Bytes of the longest field other than bytes and groups. NRI has no groups; protobuf would keep
// their contents.
constexpr size_t kLongestNumber = 5 + 10;

class Counter {
 public:
  explicit Counter(size_t most) : most_(most) {}

  // Counts recursively; NRI's types are not recursive, so the depth is that of the longest chain of
  // types.
  void Add(std::string_view bytes, const Descriptor& type) {
    WireReader reader(bytes);
    for (size_t left = bytes.size(); count_ <= most_ && reader.Next();) {
      ++count_;
      const size_t length = std::exchange(left, reader.rest().size()) - reader.rest().size();
      if (!reader.is_bytes()) {
        if (length > kLongestNumber) count_ += length / kShortestField;
        continue;
      }
      const FieldDescriptor* const field = type.FindFieldByNumber(static_cast<int>(reader.field()));
      if (field == nullptr) continue;
      if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
        Add(reader.bytes(), *field->message_type());
      } else if (field->is_packable()) {
        count_ += reader.bytes().size();
      }
    }
    if (reader.failed()) count_ = most_ + 1;
  }
  size_t count() const { return std::min(count_, most_ + 1); }

 private:
  const size_t most_;
  size_t count_ = 0;
};

}  // namespace

size_t CountFields(std::string_view bytes, const Descriptor& type, size_t most) {
  Counter counter(most);
  counter.Add(bytes, type);
  return counter.count();
}

Status DecodeMessage(std::string_view bytes, google::protobuf::Message& message, size_t most) {
  // Nearly all messages are too short to have that many fields.
  const bool maybe_many = bytes.size() / kShortestField > most;
  if (maybe_many && CountFields(bytes, *message.GetDescriptor(), most) > most) {
    return ResourceExhausted("it has more than {} fields, or is not protobuf", most);
  }
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("it is not protobuf");
  }
  return OkStatus();
}

}  // namespace resmgr::nri
