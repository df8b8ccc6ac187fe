// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/reply_merge.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/message_lite.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/cri/backends.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Fails;
using test::IsOk;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;
using testing::UnorderedElementsAre;
namespace cri = ::runtime::v1;

// Three runtimes: the default one, "kata" and "gvisor", each with the handler of its name.
class ReplyMergeTest : public testing::Test {
 protected:
  static RuntimeReply Reply(const google::protobuf::MessageLite& message) {
    return {.message = message.SerializeAsString()};
  }
  static RuntimeReply Away() { return {.status = Unavailable("no runtime: connection refused")}; }
  static RuntimeReply Lacks() { return {.status = Unimplemented("unknown method")}; }

  static cri::StatusResponse Ready() {
    cri::StatusResponse status;
    for (const char* type : {"RuntimeReady", "NetworkReady"}) {
      auto* condition = status.mutable_status()->add_conditions();
      condition->set_type(type);
      condition->set_status(true);
    }
    return status;
  }
  static void AddHandler(cri::StatusResponse& status, const std::string& name, bool features) {
    auto* handler = status.add_runtime_handlers();
    handler->set_name(name);
    handler->mutable_features()->set_user_namespaces(features);
  }
  static const cri::RuntimeCondition& Condition(const cri::StatusResponse& status,
                                                const std::string& type) {
    for (const auto& condition : status.status().conditions()) {
      if (condition.type() == type) return condition;
    }
    ADD_FAILURE() << "no " << type;
    return cri::RuntimeCondition::default_instance();
  }
  cri::StatusResponse Merged(const std::vector<RuntimeReply>& replies) const {
    const StatusOr<std::string> merged = MergeStatus(backends_, replies);
    EXPECT_THAT(merged, IsOk());
    cri::StatusResponse status;
    EXPECT_TRUE(status.ParseFromString(merged.value_or("")));
    return status;
  }
  static RuntimeReply Driver(cri::CgroupDriver driver) {
    cri::RuntimeConfigResponse config;
    config.mutable_linux()->set_cgroup_driver(driver);
    return Reply(config);
  }

  const Backends backends_{{{.name = "default", .socket = "/1"},
                            {.name = "kata", .socket = "/2", .handlers = {"kata"}},
                            {.name = "gvisor", .socket = "/3", .handlers = {"gvisor"}}}};
};

TEST_F(ReplyMergeTest, R05StatusIsReadyWhereAllRuntimesAre) {
  const cri::StatusResponse status = Merged({Reply(Ready()), Reply(Ready()), Reply(Ready())});
  EXPECT_TRUE(Condition(status, "RuntimeReady").status());
  EXPECT_TRUE(Condition(status, "NetworkReady").status());
  EXPECT_EQ(status.status().conditions_size(), 2);
}

TEST_F(ReplyMergeTest, R05StatusNamesAllRuntimesThatAreNotReady) {
  cri::StatusResponse no_network = Ready();
  auto* condition = no_network.mutable_status()->mutable_conditions(1);
  condition->set_status(false);
  condition->set_reason("NetworkPluginNotReady");
  condition->set_message("cni plugin not initialized");
  const cri::StatusResponse status = Merged({Reply(Ready()), Reply(no_network), Away()});
  EXPECT_FALSE(Condition(status, "NetworkReady").status());
  EXPECT_EQ(Condition(status, "NetworkReady").reason(), "NetworkPluginNotReady");
  EXPECT_EQ(Condition(status, "NetworkReady").message(),
            "runtime kata: cni plugin not initialized");
  EXPECT_FALSE(Condition(status, "RuntimeReady").status());
  EXPECT_EQ(Condition(status, "RuntimeReady").message(),
            "runtime gvisor: no runtime: connection refused");

  const cri::StatusResponse two = Merged({Away(), Reply(Ready()), Away()});
  EXPECT_THAT(Condition(two, "RuntimeReady").message(),
              AllOf(HasSubstr("runtime default: "), HasSubstr("; runtime gvisor: ")));
}

TEST_F(ReplyMergeTest, R05StatusWithoutRequiredConditionIsNotReady) {
  cri::StatusResponse silent = Ready();
  silent.mutable_status()->mutable_conditions()->RemoveLast();
  const cri::StatusResponse status = Merged({Reply(Ready()), Reply(silent), Reply(Ready())});
  EXPECT_FALSE(Condition(status, "NetworkReady").status());
  EXPECT_THAT(Condition(status, "NetworkReady").message(), HasSubstr("runtime kata: "));
  EXPECT_TRUE(Condition(status, "RuntimeReady").status());
}

TEST_F(ReplyMergeTest, R05StatusOfNoRuntimeIsFirstFailure) {
  EXPECT_THAT(MergeStatus(backends_, {Away(), Away(), Away()}),
              Fails(StatusCode::kUnavailable, HasSubstr("runtime default: ")));
  EXPECT_THAT(MergeStatus(backends_, {{.message = "\x0a"}, Away(), Away()}),
              Fails(StatusCode::kInternal, HasSubstr("runtime default: ")));
}

TEST_F(ReplyMergeTest, R06HandlersAreToldByRuntimesThatGetTheirPods) {
  cri::StatusResponse first = Ready();
  AddHandler(first, "", true);
  AddHandler(first, "runc", true);
  AddHandler(first, "kata", true);  // its pods go to the second
  cri::StatusResponse second = Ready();
  AddHandler(second, "", false);
  AddHandler(second, "kata", false);
  AddHandler(second, "kata", true);   // not unique
  AddHandler(second, "runc", false);  // its pods go to the first
  const cri::StatusResponse status = Merged({Reply(first), Reply(second), Reply(Ready())});
  std::vector<std::pair<std::string, bool>> handlers;
  for (const auto& handler : status.runtime_handlers())
    handlers.emplace_back(handler.name(), handler.features().user_namespaces());
  EXPECT_THAT(handlers, ElementsAre(Pair("", true), Pair("runc", true), Pair("kata", false)));
}

TEST_F(ReplyMergeTest, R06FeaturesAreThoseOfAllRuntimes) {
  // Field 3 is newer than our messages.
  const std::string three_and_one("\x22\x04\x08\x01\x18\x01", 6);
  const std::string three_and_two("\x22\x04\x10\x01\x18\x01", 6);
  const auto with = [](const std::string& features) {
    return RuntimeReply{.message = Ready().SerializeAsString() + features};
  };
  const std::vector<RuntimeReply> replies = {with(three_and_one), with(three_and_two), Away()};
  EXPECT_EQ(Merged(replies).features().SerializeAsString(), std::string("\x18\x01", 2));
  const cri::StatusResponse none =
      Merged({with(three_and_one), with(three_and_one), Reply(Ready())});
  EXPECT_TRUE(none.has_features());
  EXPECT_EQ(none.features().SerializeAsString(), "");
  EXPECT_FALSE(Merged({Reply(Ready()), Reply(Ready()), Reply(Ready())}).has_features());
}

TEST_F(ReplyMergeTest, InfoOfAllRuntimesIsKept) {
  cri::StatusResponse verbose = Ready();
  (*verbose.mutable_info())["config"] = "{}";
  cri::StatusResponse other = Ready();
  (*other.mutable_info())["config"] = "[]";
  const cri::StatusResponse status = Merged({Reply(verbose), Reply(other), Reply(Ready())});
  EXPECT_THAT(status.info(), UnorderedElementsAre(Pair("config", "{}"), Pair("kata.config", "[]")));
}

TEST_F(ReplyMergeTest, CgroupDriversHaveToBeEqual) {
  const StatusOr<std::string> same =
      MergeRuntimeConfig(backends_, {Lacks(), Driver(cri::CGROUPFS), Driver(cri::CGROUPFS)});
  EXPECT_EQ(same.value_or(""), Driver(cri::CGROUPFS).message) << "an old runtime has no say";
  EXPECT_THAT(MergeRuntimeConfig(backends_, {Driver(cri::SYSTEMD), Lacks(), Driver(cri::CGROUPFS)}),
              Fails(StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr("default has systemd"), HasSubstr("gvisor has cgroupfs"))));
  EXPECT_THAT(MergeRuntimeConfig(backends_, {Lacks(), Lacks(), Lacks()}),
              Fails(StatusCode::kUnimplemented, HasSubstr("unknown method")));
  EXPECT_EQ(MergeRuntimeConfig(backends_, {Driver(cri::SYSTEMD), Away(), Lacks()}).value_or(""),
            Driver(cri::SYSTEMD).message)
      << "a kubelet without an answer does not start";
  EXPECT_THAT(MergeRuntimeConfig(backends_, {Away(), Lacks(), Away()}),
              Fails(StatusCode::kUnimplemented, HasSubstr("runtime kata: ")));
  EXPECT_THAT(MergeRuntimeConfig(backends_, {Away(), Away(), Away()}),
              Fails(StatusCode::kUnavailable, HasSubstr("runtime default: ")));
  EXPECT_THAT(MergeRuntimeConfig(backends_,
                                 {Driver(cri::SYSTEMD), {.status = Internal("broken")}, Lacks()}),
              Fails(StatusCode::kInternal, HasSubstr("runtime kata: broken")));
  EXPECT_THAT(MergeRuntimeConfig(backends_, {{.message = "\x0a"}, Lacks(), Lacks()}),
              Fails(StatusCode::kInternal, HasSubstr("runtime default: ")));
}

TEST_F(ReplyMergeTest, UpdateTellsFirstFailureOfThoseThatHaveTheMethod) {
  EXPECT_THAT(MergeEmpty(backends_, {{}, Lacks(), {}}), IsOk());
  EXPECT_THAT(MergeEmpty(backends_, {{}, Lacks(), Away()}),
              Fails(StatusCode::kUnavailable, HasSubstr("runtime gvisor: ")));
  EXPECT_THAT(MergeEmpty(backends_, {Lacks(), Lacks(), Lacks()}),
              test::HasCode(StatusCode::kUnimplemented));
}

TEST_F(ReplyMergeTest, MetricDescriptorsAreUniqueByName) {
  const auto named = [](const std::vector<std::pair<std::string, std::string>>& descriptors) {
    cri::ListMetricDescriptorsResponse list;
    for (const auto& [name, help] : descriptors) {
      list.add_descriptors()->set_name(name);
      list.mutable_descriptors()->rbegin()->set_help(help);
    }
    return Reply(list);
  };
  const StatusOr<std::string> merged = MergeMetrics(
      backends_,
      {named({{"a", "first"}, {"b", ""}}), named({{"a", "second"}, {"c", ""}}), Lacks()});
  EXPECT_EQ(merged.value_or(""), named({{"a", "first"}, {"b", ""}, {"c", ""}}).message);
  EXPECT_THAT(MergeMetrics(backends_, {{}, {}, Away()}), test::HasCode(StatusCode::kUnavailable));
  EXPECT_THAT(MergeMetrics(backends_, {{}, {.message = "\x0a\x02\x0a\x05"}, {}}),
              Fails(StatusCode::kInternal, HasSubstr("runtime kata: ")));
}

}  // namespace
}  // namespace resmgr
