// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/message_differencer.h>

namespace resmgr::nri {

// Parses protobuf's text form; a malformed text fails the test.
template <typename Message>
Message Make(std::string_view text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(std::string(text), &message)) << text;
  return message;
}

// Matches a message that equals the text exactly.
MATCHER_P(Is, text, "is " + std::string(text)) {
  using Message = std::decay_t<decltype(arg)>;
  std::string differences;
  google::protobuf::util::MessageDifferencer differencer;
  differencer.ReportDifferencesToString(&differences);
  const bool same = differencer.Compare(Make<Message>(text), arg);
  *result_listener << differences;
  return same;
}

}  // namespace resmgr::nri
