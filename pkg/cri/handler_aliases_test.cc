// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/handler_aliases.h"

#include <random>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/state/file_system.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;

class HandlerAliasesTest : public testing::Test {
 protected:
  StateStore Open() {
    return {RealFileSystem(), dir_.path(), "machine", [this](std::string_view) { ++reports_; }};
  }

  const TempDir dir_;
  int reports_ = 0;
  const HandlerAliases::Table table_ = {{"pinned", "runc"}, {"quiet", ""}};
};

TEST_F(HandlerAliasesTest, SandboxesHaveTheirAliasesOverRestarts) {
  {
    StateStore state = Open();
    HandlerAliases aliases(table_);
    aliases.Remember(&state);
    aliases.Add(PodSandboxId("one"), "pinned");
    aliases.Add(PodSandboxId("two"), "quiet");
    aliases.Add(PodSandboxId("three"), "quiet");
    aliases.Remove(PodSandboxId("three"));
    EXPECT_EQ(state.size(), 0U) << "they are no containers";
    state.Retain([](std::string_view) { return false; });
    aliases.Remember(nullptr);
    aliases.Add(PodSandboxId("late"), "quiet");
  }
  StateStore state = Open();
  HandlerAliases aliases(table_);
  aliases.Remember(&state);
  EXPECT_EQ(aliases.sandboxes(), 2U);
  EXPECT_EQ(aliases.HandlerOf("one", "runc"), "pinned");
  EXPECT_EQ(aliases.HandlerOf("two", ""), "quiet");
  EXPECT_EQ(aliases.HandlerOf("three", "runc"), "runc");
  EXPECT_EQ(reports_, 0);
}

TEST_F(HandlerAliasesTest, AliasThatIsNotConfiguredAnyMoreIsForgotten) {
  {
    StateStore state = Open();
    HandlerAliases aliases(table_);
    aliases.Remember(&state);
    aliases.Add(PodSandboxId("one"), "pinned");
    aliases.Add(PodSandboxId("two"), "quiet");
  }
  for (const char* time : {"first", "again"}) {
    StateStore state = Open();
    HandlerAliases aliases(HandlerAliases::Table{{"quiet", ""}});
    aliases.Remember(&state);
    EXPECT_EQ(aliases.HandlerOf("one", "runc"), "runc") << time;
    EXPECT_EQ(aliases.HandlerOf("two", ""), "quiet") << time;
  }
  StateStore state = Open();
  EXPECT_FALSE(state.FindNote(StateStore::PodNote::kHandler, PodSandboxId("one")));
}

TEST_F(HandlerAliasesTest, NewSandboxesAreKeptByAListThatBeganBefore) {
  HandlerAliases aliases(table_);
  aliases.Add(PodSandboxId("gone"), "pinned");
  aliases.Add(PodSandboxId("here"), "pinned");
  const HandlerAliases::Moment begin = aliases.Now();
  aliases.Add(PodSandboxId("new"), "pinned");
  aliases.RetainListed({"here", "other"}, begin);
  EXPECT_EQ(aliases.AliasOf("gone"), nullptr);
  EXPECT_NE(aliases.AliasOf("here"), nullptr);
  EXPECT_NE(aliases.AliasOf("new"), nullptr);
}

TEST_F(HandlerAliasesTest, SandboxesAreBounded) {
  HandlerAliases aliases(table_);
  for (size_t i = 0; i <= HandlerAliases::kMostSandboxes; ++i)
    aliases.Add(PodSandboxId(std::to_string(i)), "pinned");
  EXPECT_EQ(aliases.sandboxes(), HandlerAliases::kMostSandboxes);
  EXPECT_EQ(aliases.AliasOf("0"), nullptr);
  EXPECT_NE(aliases.AliasOf("1"), nullptr);
}

TEST_F(HandlerAliasesTest, WhatIsNoAliasIsNotKept) {
  HandlerAliases aliases(table_);
  aliases.Add(PodSandboxId("one"), "runc");
  aliases.Add(PodSandboxId(""), "pinned");
  EXPECT_EQ(aliases.sandboxes(), 0U);
}

class HandlerEditsTest : public testing::Test {
 protected:
  HandlerEditsTest() { aliases_.Add(PodSandboxId("sandbox"), "runc-pinned"); }

  std::string ToRuntime(HandlerUse use, const google::protobuf::Message& request) {
    const std::string bytes = request.SerializeAsString();
    return WithRuntimesHandlers(use, bytes, aliases_).value_or(bytes);
  }
  std::string ToClient(HandlerUse use, const google::protobuf::Message& reply) {
    const std::string bytes = reply.SerializeAsString();
    return WithAliases(use, bytes, aliases_).value_or(bytes);
  }
  static HandlerUse UseOf(std::string_view path) { return HandlerUseOf(ClassifyMethod(path)); }

  HandlerAliases aliases_{
      HandlerAliases::Table{{"runc-pinned", "runc"}, {"quiet", ""}, {"kata-pinned", "kata"}}};
};

TEST_F(HandlerEditsTest, MethodsOfBothVersionsNameHandlers) {
  EXPECT_EQ(UseOf("/runtime.v1.RuntimeService/RunPodSandbox"), HandlerUse::kNewSandbox);
  EXPECT_EQ(UseOf("/runtime.v1alpha2.ImageService/ListImages"), HandlerUse::kImageFilter);
  EXPECT_EQ(UseOf("/runtime.v1.RuntimeService/ListContainers"), HandlerUse::kNone);
  EXPECT_EQ(UseOf("/runtime.v1.ImageService/Status"), HandlerUse::kNone);
  EXPECT_EQ(UseOf("/other.Service/RunPodSandbox"), HandlerUse::kNone);
}

TEST_F(HandlerEditsTest, NewSandboxGetsTheHandlerBehindTheAliasInItsPlace) {
  v1::RunPodSandboxRequest request;
  request.mutable_config()->mutable_metadata()->set_name("runc-pinned");
  request.set_runtime_handler("runc-pinned");
  // Unknown fields of later versions stay behind it.
  const std::string bytes = request.SerializeAsString() + "\x82\x7d\x03new";
  v1::RunPodSandboxRequest expected = request;
  expected.set_runtime_handler("runc");
  EXPECT_EQ(WithRuntimesHandlers(HandlerUse::kNewSandbox, bytes, aliases_),
            expected.SerializeAsString() + "\x82\x7d\x03new");
  request.set_runtime_handler("runc");
  EXPECT_EQ(ToRuntime(HandlerUse::kNewSandbox, request), request.SerializeAsString());
}

TEST_F(HandlerEditsTest, AliasOfTheDefaultHandlerBecomesNone) {
  v1::RunPodSandboxRequest request;
  request.set_runtime_handler("quiet");
  v1::RunPodSandboxRequest sent;
  ASSERT_TRUE(sent.ParseFromString(ToRuntime(HandlerUse::kNewSandbox, request)));
  EXPECT_EQ(sent.runtime_handler(), "");
}

TEST_F(HandlerEditsTest, ImagesAreThoseOfTheHandlerBehindTheAlias) {
  v1::PullImageRequest pull;
  pull.mutable_image()->set_image("busybox");
  pull.mutable_image()->set_runtime_handler("kata-pinned");
  pull.mutable_auth()->set_password("kata-pinned");
  v1::PullImageRequest pulled = pull;
  pulled.mutable_image()->set_runtime_handler("kata");
  EXPECT_EQ(ToRuntime(HandlerUse::kImage, pull), pulled.SerializeAsString());

  v1::ListImagesRequest list;
  list.mutable_filter()->mutable_image()->set_runtime_handler("kata-pinned");
  v1::ListImagesRequest listed;
  listed.mutable_filter()->mutable_image()->set_runtime_handler("kata");
  EXPECT_EQ(ToRuntime(HandlerUse::kImageFilter, list), listed.SerializeAsString());

  v1::CreateContainerRequest create;
  create.mutable_config()->mutable_image()->set_runtime_handler("kata-pinned");
  create.mutable_config()->add_mounts()->set_host_path("/x");
  create.mutable_config()->add_mounts()->mutable_image()->set_runtime_handler("kata-pinned");
  v1::CreateContainerRequest created = create;
  created.mutable_config()->mutable_image()->set_runtime_handler("kata");
  created.mutable_config()->mutable_mounts(1)->mutable_image()->set_runtime_handler("kata");
  EXPECT_EQ(ToRuntime(HandlerUse::kNewContainer, create), created.SerializeAsString());
}

TEST_F(HandlerEditsTest, ListsHaveTheAliasOfThoseThatWereMadeWithOne) {
  v1::ListPodSandboxResponse list;
  for (const char* id : {"other", "sandbox", "third"}) {
    v1::PodSandbox& pod = *list.add_items();
    pod.set_id(id);
    pod.set_runtime_handler("runc");
    (*pod.mutable_labels())["a"] = "b";
  }
  v1::ListPodSandboxResponse expected = list;
  expected.mutable_items(1)->set_runtime_handler("runc-pinned");
  EXPECT_EQ(ToClient(HandlerUse::kSandboxList, list), expected.SerializeAsString());
  list.mutable_items()->DeleteSubrange(1, 1);
  EXPECT_EQ(WithAliases(HandlerUse::kSandboxList, list.SerializeAsString(), aliases_),
            std::nullopt);
}

TEST_F(HandlerEditsTest, HandlerThatTheRuntimeLeavesOutIsAdded) {
  v1::ListPodSandboxResponse list;
  list.add_items()->set_id("sandbox");
  v1::ListPodSandboxResponse shown;
  ASSERT_TRUE(shown.ParseFromString(ToClient(HandlerUse::kSandboxList, list)));
  EXPECT_EQ(shown.items(0).runtime_handler(), "runc-pinned");
}

TEST_F(HandlerEditsTest, StatusHasTheAliasAlsoInItsVerboseInfo) {
  v1::PodSandboxStatusResponse reply;
  reply.mutable_status()->set_id("sandbox");
  reply.mutable_status()->set_runtime_handler("runc");
  (*reply.mutable_info())["info"] =
      R"({"pid":1, "runtimeHandler" : "runc","config":{"labels":{"runtimeHandler":"runc"}}})";
  v1::PodSandboxStatusResponse expected = reply;
  expected.mutable_status()->set_runtime_handler("runc-pinned");
  (*expected.mutable_info())["info"] =
      R"({"pid":1, "runtimeHandler" : "runc-pinned","config":{"labels":{"runtimeHandler":"runc"}}})";
  EXPECT_EQ(ToClient(HandlerUse::kSandboxStatus, reply), expected.SerializeAsString());
  reply.mutable_status()->set_id("other");
  EXPECT_EQ(ToClient(HandlerUse::kSandboxStatus, reply), reply.SerializeAsString());
}

TEST_F(HandlerEditsTest, EventsHaveTheAlias) {
  v1::ContainerEventResponse event;
  event.set_container_id("sandbox");
  event.mutable_pod_sandbox_status()->set_id("sandbox");
  event.mutable_pod_sandbox_status()->set_runtime_handler("runc");
  v1::ContainerEventResponse expected = event;
  expected.mutable_pod_sandbox_status()->set_runtime_handler("runc-pinned");
  EXPECT_EQ(ToClient(HandlerUse::kEvents, event), expected.SerializeAsString());
}

TEST_F(HandlerEditsTest, AliasesAreToldWithTheFeaturesOfTheirHandlers) {
  v1::StatusResponse reply;
  reply.add_runtime_handlers();
  v1::RuntimeHandler& runc = *reply.add_runtime_handlers();
  runc.set_name("runc");
  runc.mutable_features()->set_user_namespaces(true);
  reply.add_runtime_handlers()->set_name("runc-pinned");  // no pod can get this one
  v1::StatusResponse shown;
  ASSERT_TRUE(shown.ParseFromString(ToClient(HandlerUse::kHandlers, reply)));
  std::vector<std::string> names;
  for (const v1::RuntimeHandler& handler : shown.runtime_handlers()) {
    names.push_back(handler.name());
    EXPECT_EQ(handler.features().user_namespaces(), handler.name().starts_with("runc"));
  }
  EXPECT_THAT(names, testing::ElementsAre("", "runc", "quiet", "runc-pinned"))
      << "the runtime has no handler kata";
  EXPECT_EQ(ToClient(HandlerUse::kHandlers, v1::StatusResponse()), "");
}

TEST_F(HandlerEditsTest, WhatIsNoMessageStays) {
  std::mt19937 random(3);  // NOLINT(cert-msc32-c,cert-msc51-cpp)
  v1::PodSandboxStatusResponse reply;
  reply.mutable_status()->set_id("sandbox");
  reply.mutable_status()->set_runtime_handler("runc");
  (*reply.mutable_info())["info"] = R"({"runtimeHandler":"runc"})";
  const std::string whole = reply.SerializeAsString();
  for (int step = 0; step < 5'000; ++step) {
    std::string bytes = whole.substr(0, random() % (whole.size() + 1));
    if (!bytes.empty()) bytes[random() % bytes.size()] = static_cast<char>(random());
    for (int use = 0; use <= static_cast<int>(HandlerUse::kHandlers); ++use) {
      for (const auto& edited : {WithAliases(HandlerUse(use), bytes, aliases_),
                                 WithRuntimesHandlers(HandlerUse(use), bytes, aliases_)}) {
        EXPECT_LT(edited.value_or("").size(), bytes.size() + 64);
      }
    }
  }
}

TEST(JsonMember, OnlyTheTextOfTheOutermostObjectIsReplaced) {
  EXPECT_EQ(WithJsonText(R"({"a":{"k":"x"},"b":["k","x"],"c":"k","k":"x\"y","d":1})", "k", "new"),
            R"({"a":{"k":"x"},"b":["k","x"],"c":"k","k":"new","d":1})");
  for (const char* without : {"", "{", "{}", R"({"k":1})", R"({"k)", R"({"k":"x)", R"({"k")",
                              R"({"k":)", R"([{"k":"x"}])", R"({"v":"\"k\":\"x\""})"}) {
    EXPECT_EQ(WithJsonText(without, "k", "new"), std::nullopt) << without;
  }
}

}  // namespace
}  // namespace resmgr
