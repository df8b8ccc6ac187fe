// SPDX-License-Identifier: Apache-2.0
#include "agent/slice_writer.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/testing/fake_transport.h"
#include "pkg/base/json.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {
namespace {

using cri_resmgr::v1::SliceAttribute;
using cri_resmgr::v1::SliceDevice;
using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr char kList[] = "resourceVersion=0";
constexpr char kWatch[] = "watch=1";
// The target of the question for the slices of the driver on the node.
constexpr char kAll[] = "fieldSelector=spec.";
// Targets of writes: of a new object, and of one that is there.
constexpr char kNew[] = "/resourceslices?fieldManager";
constexpr char kOne[] = "/resourceslices/n1-dra.cpu";
constexpr milliseconds kSpread{5000};

SliceDevice Device(const std::string& name, int64_t cpus, int64_t step = 1) {
  SliceDevice device;
  device.set_name(name);
  device.set_capacity("dra.cpu/cpu");
  device.set_cpus(cpus);
  device.set_step(step);
  return device;
}

SliceAttribute& AddAttribute(SliceDevice& device, const std::string& name) {
  SliceAttribute& attribute = *device.add_attributes();
  attribute.set_name(name);
  return attribute;
}

ShowDevicesRequest ReportOf(const std::vector<SliceDevice>& devices) {
  ShowDevicesRequest report;
  report.set_driver("dra.cpu");
  report.mutable_devices()->Add(devices.begin(), devices.end());
  return report;
}

ShowDevicesRequest Report(int64_t cpus) {
  return ReportOf({Device("cpudevnuma000", cpus)});
}

// A slice of another program.
Json Foreign(const std::string& name, int64_t generation, const std::string& node = "n1",
             const std::string& driver = "dra.cpu") {
  return {{"metadata", {{"name", name}, {"uid", "uid-of-" + name}}},
          {"spec",
           {{"driver", driver},
            {"nodeName", node},
            {"pool", {{"name", node}, {"generation", generation}}}}}};
}

// The API server is the test: it keeps the object, and shows changes in the watch.
class SliceWriterTest : public testing::Test {
 protected:
  void SeeNode(const std::string& uid = "uid-1") {
    writer_.NodeSeen({{"metadata", {{"name", "n1"}, {"uid", uid}}}});
  }
  void Show(std::optional<ShowDevicesRequest> report) {
    EXPECT_EQ(writer_.Show(std::move(report)), OkStatus());
  }
  // The daemon goes on reporting the same for so long.
  void Live(const ShowDevicesRequest& report, milliseconds time,
            StatusCode answer = StatusCode::kOk) {
    for (milliseconds passed{0}; passed < time; passed += seconds(10)) {
      ASSERT_EQ(writer_.Show(report).code(), answer);
      timers_.Advance(seconds(10));
    }
  }
  // Answers the list with the object.
  bool List() {
    timers_.Advance(milliseconds(0));
    Json items = Json::array();
    if (object_) items.push_back(*object_);
    return transport_.Answer(kList, 200,
                             {{"metadata", {{"resourceVersion", "1"}}}, {"items", items}});
  }
  void ShowChange(const std::string& type) {
    ASSERT_TRUE(transport_.Stream(kWatch, JsonText({{"type", type}, {"object", *object_}}) + "\n"));
  }
  // The kubelet deletes it.
  void Delete() {
    ShowChange("DELETED");
    object_.reset();
  }
  // "POST", "PUT", "DELETE" or "GET" of the request that is due; "" for none.
  std::string Due(milliseconds within = kSpread) {
    timers_.Advance(within);
    AnswerAll();
    return Method();
  }
  // Answers the question for all slices of the driver on the node.
  bool AnswerAll(int status = 200) {
    Json items = foreign_;
    if (object_) items.push_back(*object_);
    return transport_.Answer(kAll, status, {{"items", items}});
  }
  std::string Method() const { return Writing().target.empty() ? "" : Writing().method; }
  HttpRequest Writing() const { return transport_.Request(transport_.Has(kNew) ? kNew : kOne); }
  bool Answer(int status, const Json& body = Json::object()) {
    return transport_.Answer(transport_.Has(kNew) ? kNew : kOne, status, body);
  }
  // The server keeps what is written, but has not answered.
  void Keep() {
    ASSERT_THAT(Method(), testing::AnyOf("POST", "PUT"));
    Json object = ParseJson(Writing().body).value();
    object["metadata"]["resourceVersion"] = std::to_string(++version_);
    object["metadata"]["uid"] = "slice-uid";
    if (drops_policies_)
      object["spec"]["devices"][0]["capacity"]["dra.cpu/cpu"].erase("requestPolicy");
    object_ = object;
  }
  // The server takes what is written, and answers with the whole object.
  void Take() {
    const bool is_new = Method() == "POST";
    Keep();
    ASSERT_TRUE(Answer(is_new ? 201 : 200, *object_));
    if (transport_.Has(kWatch)) ShowChange(is_new ? "ADDED" : "MODIFIED");
  }
  int64_t Generation() const {
    return object_ ? (*object_)["spec"]["pool"]["generation"].get<int64_t>() : -1;
  }
  std::string Cpus() const {
    return (*object_)["spec"]["devices"][0]["capacity"]["dra.cpu/cpu"]["value"].get<std::string>();
  }
  // The first write has no answer yet.
  void SendFirst(int64_t cpus = 8) {
    SeeNode();
    Show(Report(cpus));
    ASSERT_TRUE(List());
    ASSERT_EQ(Due(), "POST");
  }
  void WriteFirst(int64_t cpus = 8) {
    SendFirst(cpus);
    Take();
  }

  FakeTransport transport_;
  ManualClock timers_;
  std::optional<Json> object_;
  std::vector<Json> foreign_;
  int version_ = 1;
  bool drops_policies_ = false;
  SliceWriter writer_{transport_, timers_, "n1", {.spread = kSpread}, 1};
};

TEST_F(SliceWriterTest, AsksTheServerNothingBeforeTheFirstReport) {
  SeeNode();
  timers_.Advance(minutes(60));
  Show(std::nullopt);
  timers_.Advance(minutes(60));
  EXPECT_EQ(transport_.sent(), 0);
}

TEST_F(SliceWriterTest, MakesTheObjectOfTheNode) {
  WriteFirst();
  EXPECT_EQ(Generation(), 1);
  EXPECT_EQ((*object_)["metadata"]["ownerReferences"][0]["uid"], "uid-1");
  Live(Report(8), minutes(30));
  EXPECT_EQ(Method(), "") << "what the server has is not written again";
}

TEST_F(SliceWriterTest, D13AnotherCapacityHasTheNextGenerationWithinASecond) {
  WriteFirst();
  timers_.Advance(seconds(2));
  Show(Report(6));
  ASSERT_EQ(Due(milliseconds(600)), "PUT");
  EXPECT_THAT(Writing().body, testing::HasSubstr("\"resourceVersion\":\"2\""));
  Take();
  EXPECT_EQ(Generation(), 2);
  EXPECT_EQ(Cpus(), "6");
}

TEST_F(SliceWriterTest, WritesAtMostOnceASecond) {
  WriteFirst();
  const int64_t before = Generation();
  for (int i = 0; i < 100; ++i) {
    Show(Report(1 + i % 8));
    timers_.Advance(milliseconds(100));
    if (!Method().empty()) Take();
  }
  EXPECT_LE(Generation() - before, 11);
  EXPECT_GE(Generation() - before, 5);
}

TEST_F(SliceWriterTest, TheNextAgentLeavesWhatIsRight) {
  object_ = SliceObject("n1", "uid-1", Report(8), 7);
  SeeNode();
  Show(Report(8));
  ASSERT_TRUE(List());
  Live(Report(8), minutes(5));
  EXPECT_EQ(Method(), "");
  EXPECT_FALSE(transport_.Has(kAll));
  Show(Report(5));
  ASSERT_EQ(Due(), "PUT");
  Take();
  EXPECT_EQ(Generation(), 8);
}

TEST_F(SliceWriterTest, TheNextAgentIsNoSlowerThanTheOneThatWrote) {
  object_ = SliceObject("n1", "uid-1", Report(8), 7);
  SeeNode();
  Show(Report(8));
  ASSERT_TRUE(List());
  timers_.Advance(seconds(2));
  Show(Report(5));
  EXPECT_EQ(Due(milliseconds(600)), "PUT");
}

// Devices of the same name in two slices make a pool invalid, and readers skip a lower generation.
TEST_F(SliceWriterTest, SlicesThatAFormerDriverOfThisNameHasLeftAreReplaced) {
  foreign_ = {Foreign("n1-dra.cpu-x7k2p", 7), Foreign("n1-dra.cpu-second", 9),
              Foreign("n2-dra.cpu-a", 20, "n2"), Foreign("n1-gpu-b", 20, "n1", "gpu")};
  WriteFirst();
  EXPECT_EQ(Generation(), 10);
  const auto deleted = [this](int answer) {
    EXPECT_EQ(Method(), "DELETE");
    const std::string name = Writing().target.substr(Writing().target.rfind('/') + 1);
    EXPECT_EQ(ParseJson(Writing().body).value_or(Json())["preconditions"]["uid"], "uid-of-" + name);
    EXPECT_TRUE(Answer(answer));
    return name;
  };
  const std::vector<std::string> gone = {deleted(404), deleted(200)};
  EXPECT_THAT(gone, testing::UnorderedElementsAre("n1-dra.cpu-x7k2p", "n1-dra.cpu-second"));
  Live(Report(8), minutes(30));
  EXPECT_EQ(Method(), "");
  EXPECT_FALSE(transport_.Has(kAll)) << "once is enough";
}

TEST_F(SliceWriterTest, AChangeGoesBeforeTheRestOfWhatAFormerDriverLeft) {
  foreign_ = {Foreign("n1-dra.cpu-a", 1), Foreign("n1-dra.cpu-b", 1)};
  WriteFirst();
  ASSERT_EQ(Method(), "DELETE");
  Show(Report(6));
  timers_.Advance(seconds(2));
  ASSERT_TRUE(Answer(200));
  ASSERT_EQ(Method(), "PUT");
  Take();
  EXPECT_EQ(Cpus(), "6");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Method(), "DELETE");
    ASSERT_TRUE(Answer(409));
  }
  EXPECT_EQ(Method(), "");
}

// An API server that has just started forbids everything.
TEST_F(SliceWriterTest, SlicesOfOthersThatMayNotBeDeletedStayAfterAMinute) {
  foreign_ = {Foreign("n1-dra.cpu-a", 1), Foreign("n1-dra.cpu-b", 1), Foreign("n1-dra.cpu-c", 1)};
  WriteFirst();
  ASSERT_EQ(Method(), "DELETE");
  ASSERT_TRUE(Answer(403));
  EXPECT_EQ(Method(), "") << "at once";
  Live(Report(8), seconds(20));
  ASSERT_EQ(Method(), "DELETE");
  ASSERT_TRUE(Answer(200)) << "it knows the roles now";
  for (int refusal = 0; refusal < 5; ++refusal) {
    ASSERT_EQ(Method(), "DELETE") << refusal;
    ASSERT_TRUE(Answer(403));
    Live(Report(8), seconds(60));
  }
  Live(Report(8), minutes(30));
  EXPECT_EQ(Method(), "");
}

TEST_F(SliceWriterTest, DeletesABoundedNumberOfSlicesOfOthers) {
  for (int i = 0; i < 100; ++i)
    foreign_.push_back(Foreign("n1-dra.cpu-" + std::to_string(i), i));
  WriteFirst();
  EXPECT_EQ(Generation(), 100);
  int deleted = 0;
  for (; Method() == "DELETE" && deleted < 1000; ++deleted)
    ASSERT_TRUE(Answer(200));
  EXPECT_EQ(deleted, 64);
}

// The name is part of the path.
TEST_F(SliceWriterTest, ASliceWithoutNameIsNotDeleted) {
  foreign_ = {Foreign("", 3)};
  WriteFirst();
  EXPECT_EQ(Generation(), 4);
  EXPECT_EQ(Method(), "");
  EXPECT_FALSE(transport_.Has("/resourceslices/"));
}

TEST_F(SliceWriterTest, WithoutTheRightToListNothingIsWritten) {
  SeeNode();
  Show(Report(8));
  ASSERT_TRUE(List());
  timers_.Advance(kSpread);
  EXPECT_THAT(transport_.Request(kAll).target,
              testing::EndsWith("spec.driver%3Ddra.cpu%2Cspec.nodeName%3Dn1"));
  ASSERT_TRUE(AnswerAll(403));
  EXPECT_EQ(writer_.Show(Report(8)).code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(Due(seconds(6)), "POST");
}

TEST_F(SliceWriterTest, AnObjectThatIsDeletedWhileItIsWrittenIsMadeAnew) {
  WriteFirst();
  timers_.Advance(seconds(2));
  Show(Report(6));
  ASSERT_EQ(Due(milliseconds(600)), "PUT");
  Json written = ParseJson(Writing().body).value();
  written["metadata"]["resourceVersion"] = "3";
  Delete();
  ASSERT_TRUE(Answer(200, written));
  ASSERT_EQ(Method(), "GET");
  ASSERT_TRUE(Answer(404));
  EXPECT_EQ(Due(milliseconds(1600)), "POST");
}

TEST_F(SliceWriterTest, AnObjectThatTheWatchShowsDeletedBeforeTheAnswerIsMadeAnew) {
  WriteFirst();
  timers_.Advance(seconds(2));
  Show(Report(6));
  ASSERT_EQ(Due(milliseconds(600)), "PUT");
  Delete();
  ASSERT_TRUE(Answer(404));
  Show(Report(6));
  EXPECT_EQ(Due(milliseconds(1600)), "POST");
}

TEST_F(SliceWriterTest, D16ADeletedObjectIsWrittenAgainWithinTwoSeconds) {
  WriteFirst();
  Live(Report(8), seconds(20));
  Delete();
  ASSERT_EQ(Due(milliseconds(1600)), "POST");
  Take();
  EXPECT_EQ(Generation(), 2) << "readers may remember the former one";
}

// The kubelet deletes it for good reason: no driver would prepare its claims.
TEST_F(SliceWriterTest, D17WithoutTheDaemonADeletedObjectStaysAway) {
  WriteFirst();
  timers_.Advance(seconds(31));
  Delete();
  EXPECT_EQ(Due(minutes(10)), "");
  Show(Report(8));
  ASSERT_EQ(Due(milliseconds(1000)), "POST");
  Take();
  EXPECT_EQ(Generation(), 2);
}

// The kubelet may have deleted the driver's slices by then, and would not delete this one.
TEST_F(SliceWriterTest, AWriteIsNotTriedAgainAfterTheReportsHaveEnded) {
  SendFirst();
  for (int second = 0; second < 31; ++second) {
    if (!Method().empty()) ASSERT_TRUE(Answer(503));
    timers_.Advance(seconds(1));
  }
  if (!Method().empty()) ASSERT_TRUE(Answer(503)) << "of a try that began before";
  EXPECT_EQ(Due(minutes(10)), "");
  Show(Report(8));
  EXPECT_EQ(Due(), "POST");
}

TEST_F(SliceWriterTest, AWriteThatEndsAfterTheReportsHaveEndedIsTakenBack) {
  SendFirst();
  timers_.Advance(seconds(31));
  Take();
  ASSERT_EQ(Method(), "DELETE");
  EXPECT_THAT(Writing().body, testing::HasSubstr("slice-uid"));
  ASSERT_TRUE(Answer(503));
  ASSERT_EQ(Due(minutes(5)), "DELETE") << "as long as the server does not answer";
  ASSERT_TRUE(Answer(200));
  Delete();
  EXPECT_EQ(Due(minutes(10)), "");
  Show(Report(8));
  ASSERT_EQ(Due(milliseconds(1600)), "POST");
  Take();
  EXPECT_EQ(Generation(), 2);
  EXPECT_EQ(Due(seconds(20)), "");
}

TEST_F(SliceWriterTest, AWriteIsTakenBackAlsoIfTheServerForbidsThatForAWhile) {
  SendFirst();
  timers_.Advance(seconds(31));
  Take();
  ASSERT_EQ(Method(), "DELETE");
  ASSERT_TRUE(Answer(403));
  EXPECT_EQ(Due(seconds(7)), "DELETE");
}

TEST_F(SliceWriterTest, AWriteWhoseReplyIsLostIsTakenBackAfterTheReportsHaveEnded) {
  SendFirst();
  for (const bool shown_first : {false, true}) {
    timers_.Advance(seconds(31));
    Keep();
    if (shown_first) ShowChange("ADDED");
    ASSERT_TRUE(transport_.Answer(kNew, Unavailable("the connection broke")));
    if (!shown_first) {
      EXPECT_EQ(Due(minutes(1)), "");
      ShowChange("ADDED");
    }
    ASSERT_EQ(Due(minutes(1)), "DELETE") << shown_first;
    ASSERT_TRUE(Answer(200));
    Delete();
    Show(Report(8));
    ASSERT_EQ(Due(), "POST");
  }
}

TEST_F(SliceWriterTest, AWriteThatConflictsWithItselfIsTakenBackAfterTheReportsHaveEnded) {
  SendFirst();
  timers_.Advance(seconds(20) - kSpread);
  Keep();
  ASSERT_TRUE(transport_.Answer(kNew, Unavailable("the connection broke")));
  timers_.Advance(seconds(1));
  ASSERT_EQ(Method(), "POST");
  timers_.Advance(seconds(20));
  ASSERT_TRUE(Answer(409));
  ASSERT_EQ(Method(), "GET");
  ASSERT_TRUE(Answer(200, *object_));
  EXPECT_EQ(Method(), "DELETE");
}

// The kubelet deletes it if the driver is really gone.
TEST_F(SliceWriterTest, AWriteThatWasSeenInTimeStays) {
  SendFirst();
  Keep();
  ASSERT_TRUE(transport_.Answer(kNew, Unavailable("the connection broke")));
  timers_.Advance(seconds(1));
  ASSERT_TRUE(Answer(409));
  ASSERT_TRUE(Answer(200, *object_));
  timers_.Advance(minutes(1));
  ShowChange("MODIFIED");
  EXPECT_EQ(Due(minutes(1)), "");
}

TEST_F(SliceWriterTest, AWriteThatAnotherWasToFollowIsTakenBackAfterTheReportsHaveEnded) {
  SendFirst();
  Show(Report(6));
  timers_.Advance(seconds(31));
  Take();
  EXPECT_EQ(Due(minutes(1)), "DELETE");
}

TEST_F(SliceWriterTest, ReportsThatComeBackWhileTheObjectIsTakenBackMakeItAnew) {
  SendFirst();
  timers_.Advance(seconds(31));
  Take();
  ASSERT_EQ(Method(), "DELETE");
  Show(Report(8));
  ASSERT_EQ(Due(), "DELETE") << "no answer yet";
  ASSERT_TRUE(Answer(200));
  Delete();
  ASSERT_EQ(Method(), "PUT");
  ASSERT_TRUE(Answer(404));
  EXPECT_EQ(Due(milliseconds(1600)), "POST");
}

TEST_F(SliceWriterTest, WithoutDevicesTheObjectIsRemovedOnce) {
  WriteFirst();
  Show(std::nullopt);
  ASSERT_EQ(Due(), "DELETE");
  EXPECT_THAT(Writing().body, testing::HasSubstr("slice-uid"));
  ASSERT_TRUE(Answer(200));
  Delete();
  EXPECT_EQ(Due(minutes(10)), "");
  Show(Report(4));
  ASSERT_EQ(Due(), "POST");
}

TEST_F(SliceWriterTest, AConflictIsLookedAt) {
  WriteFirst();
  timers_.Advance(seconds(2));
  Show(Report(6));
  ASSERT_EQ(Due(), "PUT");
  ASSERT_TRUE(Answer(409));
  ASSERT_EQ(Method(), "GET");
  (*object_)["metadata"]["resourceVersion"] = "77";
  (*object_)["spec"]["pool"]["generation"] = 20;
  ASSERT_TRUE(Answer(200, *object_));
  ASSERT_EQ(Due(), "PUT");
  EXPECT_THAT(Writing().body, testing::HasSubstr("\"77\""));
  Take();
  EXPECT_EQ(Generation(), 21);
}

// The object was deleted just before.
TEST_F(SliceWriterTest, AWriteToNothingMakesItAnew) {
  WriteFirst();
  timers_.Advance(seconds(2));
  Show(Report(6));
  ASSERT_EQ(Due(), "PUT");
  ASSERT_TRUE(Answer(404));
  ASSERT_EQ(Due(), "POST");
  Take();
  EXPECT_GT(Generation(), 2);
}

// An API server that has just started refuses everything until it knows the roles.
TEST_F(SliceWriterTest, ARefusalIsTriedAgainWithinSecondsAndThenEveryTenMinutes) {
  SendFirst();
  for (int round = 0; round < 2; ++round) {
    const auto refused = [this](const ShowDevicesRequest& report, milliseconds within) {
      ASSERT_TRUE(Answer(403));
      EXPECT_EQ(Method(), "") << "at once";
      Live(report, within, StatusCode::kPermissionDenied);
      EXPECT_NE(Method(), "") << "after " << within.count() << " ms";
    };
    refused(Report(8), seconds(12));
    refused(Report(8), seconds(18));
    for (int i = 0; i < 6; ++i)
      refused(Report(8), minutes(13));
    ASSERT_TRUE(Answer(403));
    Live(Report(7 - round), minutes(9), StatusCode::kPermissionDenied);
    EXPECT_EQ(Method(), "");
    Live(Report(7 - round), minutes(4), StatusCode::kPermissionDenied);
    ASSERT_NE(Method(), "");
    Take();
    EXPECT_EQ(Cpus(), std::to_string(7 - round)) << "the last report";
    Show(Report(7 - round));
    Show(Report(2 + round));
    ASSERT_EQ(Due(), "PUT") << "the pauses begin anew";
  }
}

// Without the right to follow the object nothing is ever written.
TEST_F(SliceWriterTest, ARefusedListIsToldToo) {
  SeeNode();
  Show(Report(8));
  timers_.Advance(milliseconds(0));
  ASSERT_TRUE(transport_.Answer(kList, 403, {{"message", "no such role"}}));
  const Status told = writer_.Show(Report(8));
  EXPECT_EQ(told.code(), StatusCode::kPermissionDenied);
  EXPECT_THAT(Message(told), testing::HasSubstr("no such role"));
  timers_.Advance(minutes(1));
  ASSERT_TRUE(List());
  Show(Report(8));
}

// An API server that is away says nothing about the ResourceSlice.
TEST_F(SliceWriterTest, AnOutageIsNoRefusal) {
  SeeNode();
  Show(Report(8));
  timers_.Advance(milliseconds(0));
  ASSERT_TRUE(transport_.Answer(kList, 503, Json::object()));
  Show(Report(8));
}

// A server whose feature gates are off stores less than it is sent.
TEST_F(SliceWriterTest, WhatTheServerLeavesOutIsNotWrittenAgain) {
  drops_policies_ = true;
  WriteFirst();
  Live(Report(8), minutes(30));
  EXPECT_EQ(Method(), "");
  EXPECT_EQ(Generation(), 1);
}

TEST_F(SliceWriterTest, ANodeThatWasMadeAnewOwnsTheObject) {
  WriteFirst();
  Show(Report(8));
  SeeNode("uid-2");
  ASSERT_EQ(Due(), "PUT");
  Take();
  EXPECT_EQ((*object_)["metadata"]["ownerReferences"][0]["uid"], "uid-2");
}

TEST_F(SliceWriterTest, AnotherDriverIsAnotherObject) {
  WriteFirst();
  ShowDevicesRequest other = Report(8);
  other.set_driver("cpu.example.com");
  object_.reset();
  Show(other);
  ASSERT_TRUE(List());
  ASSERT_EQ(Due(), "POST");
  EXPECT_THAT(Writing().body, testing::HasSubstr("n1-cpu.example.com"));
}

// The server's form of the report differs from it, so the reports are compared. A later daemon may
// send fields that this agent does not know.
TEST_F(SliceWriterTest, TheSameReportWithAnotherBeatIsNotWrittenAgain) {
  drops_policies_ = true;
  WriteFirst();
  ShowDevicesRequest again = Report(8);
  for (uint64_t beat = 1; beat < 10; ++beat) {
    again.set_beat(beat);
    again.GetReflection()->MutableUnknownFields(&again)->AddVarint(1000, beat);
    Live(again, seconds(10));
  }
  EXPECT_EQ(Method(), "");
}

TEST_F(SliceWriterTest, ABadReportIsRefusedAndTheLastOneStays) {
  WriteFirst();
  EXPECT_EQ(writer_.Show(Report(0)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Due(minutes(10)), "");
}

TEST(SliceObjectTest, IsTheSampleOfThePeer) {
  SliceDevice device = Device("cpudevnuma000", 7);
  AddAttribute(device, "resource.kubernetes.io/numaNode").set_number(0);
  AddAttribute(device, "dra.cpu/smtEnabled").set_truth(false);
  const ShowDevicesRequest report = ReportOf({device});
  EXPECT_EQ(CheckDevices("worker-1", report), OkStatus());
  const Json expected = ParseJson(R"({
    "apiVersion":"resource.k8s.io/v1","kind":"ResourceSlice",
    "metadata":{"name":"worker-1-dra.cpu","ownerReferences":[
      {"apiVersion":"v1","kind":"Node","name":"worker-1","uid":"NODE-UID","controller":true}]},
    "spec":{"driver":"dra.cpu","nodeName":"worker-1",
      "pool":{"name":"worker-1","generation":3,"resourceSliceCount":1},
      "devices":[{"name":"cpudevnuma000","allowMultipleAllocations":true,
        "attributes":{"resource.kubernetes.io/numaNode":{"int":0},"dra.cpu/smtEnabled":{"bool":false}},
        "capacity":{"dra.cpu/cpu":{"value":"7",
          "requestPolicy":{"default":"1","validRange":{"min":"1","step":"1"}}}}}]}})")
                            .value();
  EXPECT_EQ(SliceObject("worker-1", "NODE-UID", report, 3), expected);
}

TEST(SliceObjectTest, AttributesHaveTheirTypes) {
  SliceDevice device = Device("a", 1);
  AddAttribute(device, "x/number").set_number(3);
  AddAttribute(device, "x/truth").set_truth(true);
  AddAttribute(device, "x/text").set_text("y");
  AddAttribute(device, "x/none");
  EXPECT_EQ(SliceSpec("n", ReportOf({device}), 1)["devices"][0]["attributes"],
            (Json{{"x/number", {{"int", 3}}},
                  {"x/truth", {{"bool", true}}},
                  {"x/text", {{"string", "y"}}},
                  {"x/none", {{"int", 0}}}}));
}

// The API refuses a range of one step, and claims without an amount would take the whole device.
TEST(SliceObjectTest, EachDeviceHasARequestPolicyThatTheApiTakes) {
  const auto policy = [](int64_t cpus, int64_t step) {
    const Json spec = SliceSpec("n", ReportOf({Device("a", cpus, step)}), 1);
    return spec["devices"][0]["capacity"]["dra.cpu/cpu"]["requestPolicy"];
  };
  EXPECT_EQ(policy(8, 2), (Json{{"default", "2"}, {"validRange", {{"min", "2"}, {"step", "2"}}}}));
  EXPECT_EQ(policy(2, 2), (Json{{"default", "2"}, {"validValues", Json::array({"2"})}}));
  EXPECT_EQ(policy(1, 1), (Json{{"default", "1"}, {"validValues", Json::array({"1"})}}));
}

TEST(SliceObjectTest, WhatTheApiRefusesIsNoReport) {
  const auto check = [](const SliceDevice& device) {
    return CheckDevices("n", ReportOf({device})).ok();
  };
  EXPECT_TRUE(check(Device("a", 4, 2)));
  EXPECT_FALSE(check(Device("a.b", 4)));
  EXPECT_FALSE(check(Device("", 4)));
  EXPECT_FALSE(check(Device("a", 0)));
  EXPECT_FALSE(check(Device("a", 3, 2)));
  EXPECT_FALSE(check(Device("a", 3, 0)));
  SliceDevice device = Device("a", 4);
  AddAttribute(device, "dra.cpu/model");
  EXPECT_TRUE(check(device));
  AddAttribute(device, "dra.cpu/model");
  EXPECT_FALSE(check(device)) << "twice";
  device = Device("a", 4);
  AddAttribute(device, "x").set_text(std::string(65, 'x'));
  EXPECT_FALSE(check(device));
  device = Device("a", 4);
  device.set_capacity("");
  EXPECT_FALSE(check(device));
  EXPECT_FALSE(CheckDevices(std::string(250, 'n'), ReportOf({})).ok());
  EXPECT_FALSE(CheckDevices("n", ReportOf({Device("a", 1), Device("a", 1)})).ok());
  ShowDevicesRequest many = ReportOf({});
  for (int i = 0; i < 65; ++i)
    *many.add_devices() = Device("d" + std::to_string(i), 1);
  EXPECT_FALSE(CheckDevices("n", many).ok());
  ShowDevicesRequest other = ReportOf({});
  EXPECT_TRUE(CheckDevices("n", other).ok());
  other.set_driver("a/b");
  EXPECT_FALSE(CheckDevices("n", other).ok());
}

}  // namespace
}  // namespace resmgr::agent
