// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/config_service.h"

#include <map>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/admin/testing/served_node.h"
#include "pkg/api/config.pb.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class ConfigServiceTest : public test::ServedNode {
 protected:
  // The reply's error, "" where the configuration is in force.
  std::string Set(const std::string& message) {
    const Answer answer = Call(methods_, "/v1.Config/SetConfig", message);
    EXPECT_EQ(answer.status(), OkStatus());
    v1::SetConfigReply reply;
    EXPECT_TRUE(answer.ok() && reply.ParseFromString(*answer));
    return reply.error();
  }
  std::string Set(const std::map<std::string, std::string>& data) {
    v1::SetConfigRequest request;
    request.mutable_config()->insert(data.begin(), data.end());
    return Set(request.SerializeAsString());
  }
  Answer Adjust(const std::string& adjustment) {
    v1::SetAdjustmentRequest request;
    request.set_adjustment(adjustment);
    return Call(methods_, "/v1.Config/SetAdjustment", request.SerializeAsString());
  }

  const UnaryServer::Methods methods_ = ConfigMethods(View());
};

TEST_F(ConfigServiceTest, AConfigMapIsInForceWhenItIsAnswered) {
  EXPECT_EQ(Set({{"policy", "Active: first-fit"}, {"logger", "Level: error"}}), "");
  EXPECT_EQ(configurator_.source(), "agent");
  EXPECT_EQ(configurator_.current().policy.active, "first-fit");
  EXPECT_EQ(host_.changes, 1);
}

TEST_F(ConfigServiceTest, ARefusalIsTheReplysErrorAndNotTheCalls) {
  EXPECT_THAT(Set({{"policy", "Active: unknown"}}), HasSubstr("unknown"));
  EXPECT_THAT(Set("\xff not protobuf"), HasSubstr("v1.SetConfigRequest"));
  EXPECT_EQ(configurator_.source(), "the command line");
  EXPECT_EQ(host_.changes, 0);
}

// An agent writes it into an annotation of the node.
TEST_F(ConfigServiceTest, AnErrorIsBoundedAndWithoutControlCharacters) {
  std::string value;
  for (int i = 0; i < 10'000; ++i)
    value += "\u20ac\x1b";
  host_.refusal = InvalidArgument("{}", value);
  const std::string error = Set({{"policy", "Active: first-fit"}});
  EXPECT_LE(error.size(), 8192u);
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
  EXPECT_TRUE(error.ends_with("..."));
}

TEST_F(ConfigServiceTest, AMessageThatIsTooLongIsRefusedUnread) {
  const Answer answer = Call(methods_, "/v1.Config/SetConfig", std::string(size_t{4} << 20, 'x'));
  EXPECT_EQ(answer.status().code(), StatusCode::kResourceExhausted);
}

TEST_F(ConfigServiceTest, AdjustmentsAreRefusedByName) {
  const Answer answer = Adjust(R"({"one": {}, "two": {}})");
  ASSERT_EQ(answer.status(), OkStatus());
  v1::SetAdjustmentReply reply;
  ASSERT_TRUE(reply.ParseFromString(*answer));
  const std::map<std::string, std::string> errors(reply.errors().begin(), reply.errors().end());
  EXPECT_THAT(errors, ElementsAre(Pair("one", "adjustments are not supported"),
                                  Pair("two", "adjustments are not supported")));
  const Answer none = Adjust("");
  ASSERT_TRUE(none.ok() && reply.ParseFromString(*none));
  EXPECT_THAT(reply.errors(), IsEmpty());
  EXPECT_EQ(Adjust("[1]").status().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace resmgr
