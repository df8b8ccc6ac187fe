// SPDX-License-Identifier: Apache-2.0
// The page opens what cri-resmgr-ctl simulate has written.
#include <fstream>
#include <string>
#include <vector>

#include "test/page/page_fixture.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

class SimulationTest : public PageTest {
 protected:
  // The program's output as a file.
  std::string Output(const std::string& name, const std::string& arguments) {
    const std::string file = Path(name);
    const std::string command = RESMGR_BINARY_DIR "/cmd/cri-resmgr-ctl/cri-resmgr-ctl " + arguments;
    EXPECT_THAT(RunProgram({"sh", "-c", command + " >" + file}, Path("ctl.log"), kPatience),
                IsOk());
    return file;
  }
  std::string Machine() {
    return Output("machine.json", "topology -o json -topology '" + machine_ + "'");
  }
  std::string Simulation(const std::string& form = "json", const std::string& name = "result") {
    const std::string samples = RESMGR_SOURCE_DIR "/sample-configs/simulate/";
    return Output(name + ".json", "simulate -o " + form + " -topology '" + machine_ + "' -config " +
                                      samples + "config.yaml " + samples + "pods.yaml");
  }
  void Choose(const std::vector<std::string>& files) {
    ASSERT_THAT(browser_->ChooseFiles("#files", files), IsOk());
  }

  const std::string machine_ = "synthetic:package:2 numa:1 l3:1 core:10 pu:2";
};

TEST_F(SimulationTest, IsShownStepByStep) {
  StartWithPage();
  RunShared("web", MilliCpu{500});
  OpenPage(1);
  Choose({Machine(), Simulation()});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count(".cpu"), 40) << "the machine of the file";
  EXPECT_EQ(Value("document.querySelector('#problems').hidden"), true);
  EXPECT_THAT(Text("#step-text"), HasSubstr("config"));
  EXPECT_THAT(Text("#containers"), HasSubstr("shop/orders-db/database"));
  EXPECT_THAT(Text("#containers"), testing::Not(HasSubstr("shop/payments/payments")));
  EXPECT_EQ(Count("[class*='cpu own']"), 35) << "as its summary says";
  // By keyboard, from the slider that has the focus.
  EXPECT_EQ(Value("document.activeElement.id"), "step");
  Press({Browser::kHome});
  EXPECT_TRUE(Becomes("document.querySelectorAll('#containers tbody tr').length === 0"));
  Press({Browser::kRight, Browser::kRight, Browser::kRight});
  EXPECT_EQ(Count("#containers tbody tr"), 3);
  EXPECT_THAT(Text("#step-text"), HasSubstr("create shop/orders-db/restore"));
  ASSERT_THAT(browser_->Click("#containers tbody tr:last-child button"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_THAT(Text("#details-body"), HasSubstr("2-3"));
  ASSERT_THAT(browser_->Click("#step-back"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelector('#details').hidden")) << "not there yet";
  // Returns to the node.
  ASSERT_THAT(browser_->Click("#back"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelectorAll('.cpu').length === 128"));
  EXPECT_THAT(Text("#containers"), HasSubstr("default/web/main"));
}

TEST_F(SimulationTest, ShowsReservedCpusQosAndLimits) {
  StartWithPage();
  OpenPage(0);
  Choose({Simulation("page")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count("#machine .cpu"), 40) << "the machine of the file";
  EXPECT_EQ(Value("document.querySelector('#problems').hidden"), true);
  EXPECT_GT(Count("#machine .cpu.reserved"), 0);
  const std::string row =
      Value(
          "[...document.querySelectorAll('#containers tbody tr')].find((row) => "
          "row.textContent.includes('shop/users-db/database')).textContent")
          .get<std::string>();
  EXPECT_THAT(row, testing::AllOf(HasSubstr("Guaranteed"), HasSubstr("4 GiB")));
  EXPECT_THAT(Text("#containers"), HasSubstr("BestEffort"));
}

TEST_F(SimulationTest, CpusOfClaimsHaveALookAndATextOfTheirOwn) {
  StartWithPage();
  OpenPage(0);
  const std::string samples = RESMGR_SOURCE_DIR "/sample-configs/simulate/";
  Choose(
      {Output("claims.json", "simulate -o page -topology 'synthetic:numa:2 core:4 pu:2' -config " +
                                 samples + "config.yaml " + samples + "claims.yaml")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count("#machine .cpu.claim"), 4);
  EXPECT_EQ(Value("document.querySelector('[data-cpu=\"8\"]').title").get<std::string>(),
            "CPU 8, core 4, node 1: exclusive to shop/dsp/main, by claim shop/dsp-cpus");
  EXPECT_NE(Value("getComputedStyle(document.querySelector('.cpu.claim')).borderTopStyle"),
            Value("getComputedStyle(document.querySelector('.cpu.shared')).borderTopStyle"));
  EXPECT_THAT(Text("#uses"), HasSubstr("claims 4"));
  EXPECT_THAT(Text("#containers"), HasSubstr("shop/dsp-cpus/claim"));
  EXPECT_THAT(Text("#figures"), HasSubstr("1 container, 1 claim"));
  // Before a container carries it.
  Press({Browser::kHome});
  Press({Browser::kRight});
  EXPECT_TRUE(
      Becomes("document.querySelector('[data-cpu=\"8\"]').title"
              ".endsWith('held for claim shop/dsp-cpus')"));
  EXPECT_EQ(Count("#machine .cpu.claim"), 4);
  ASSERT_THAT(browser_->Click("[data-cpu='8']"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_EQ(Text("#details-heading"), "shop/dsp-cpus/claim");
  EXPECT_THAT(Text("#details-body"), HasSubstr("cpu-numa-1: CPUs 8-11"));
}

TEST_F(SimulationTest, IsShownBesideTheNodeAndBesideAnotherOne) {
  StartWithPage();
  RunGuaranteed("db", MilliCpu{4000}, kGiB);
  OpenPage(1);
  Choose({Simulation("page")});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  ASSERT_THAT(browser_->Click("#beside"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelectorAll('#other .cpu').length === 128"));
  EXPECT_EQ(Count("#other .own"), 4);
  EXPECT_EQ(Count("#machine .cpu"), 40);
  ASSERT_THAT(browser_->ChooseFiles("#other-files", {Simulation("page", "second")}), IsOk());
  ASSERT_TRUE(Becomes("document.querySelectorAll('#other .cpu').length === 40"));
  EXPECT_THAT(Text("#other-heading"), HasSubstr("second.json"));
  EXPECT_EQ(Count("#other .own"), Count("#machine .own"));
  Press({Browser::kHome});
  EXPECT_TRUE(Becomes("document.querySelectorAll('#other .own').length === 0"));
  ASSERT_THAT(browser_->Click("#back"), IsOk());
  EXPECT_TRUE(Becomes("document.querySelector('#other-section').hidden"));
}

TEST_F(SimulationTest, NeedsNoMachine) {
  StartWithPage("synthetic:core:4 pu:1");
  OpenPage(0);
  Choose({Simulation()});
  ASSERT_TRUE(Becomes("!document.querySelector('#simulation').hidden"));
  EXPECT_EQ(Count(".cpu"), 40) << "in a row";
  EXPECT_THAT(Text("#problems"), HasSubstr("simulate -o page"));
}

TEST_F(SimulationTest, OtherFilesAreRefusedByName) {
  StartWithPage();
  OpenPage(0);
  const auto expect_refused = [this](const std::string& content, const std::string& why) {
    std::ofstream(Path("other.json")) << content;
    Choose({Path("other.json")});
    EXPECT_TRUE(Becomes("document.querySelector('#problems').textContent.includes(" +
                        Json(why).dump() + ")"))
        << Text("#problems");
    EXPECT_EQ(Value("document.querySelector('#simulation').hidden"), true);
    // Choosing the same file again has to be a change.
    ASSERT_THAT(browser_->Run("document.querySelector('#files').value = ''"), IsOk());
  };
  expect_refused("STEP OP\n", "other.json, line 1 is not JSON");
  expect_refused("\n[]\n", "other.json, line 2 is neither an effect");
  expect_refused("null\n", "other.json, line 1 is neither an effect");
  expect_refused(R"({"op":"create","changed":[null]})", "other.json, line 1 is neither an effect");
  expect_refused("", "other.json has no effects");
}

}  // namespace
}  // namespace resmgr::test
