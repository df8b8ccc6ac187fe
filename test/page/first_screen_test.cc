// SPDX-License-Identifier: Apache-2.0
// The first screen for an operator: the node, its problems, the owners of CPUs and their use; and
// finding a container there.
#include <array>
#include <map>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

#include "test/page/page_fixture.h"

namespace resmgr::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string HostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

class FirstScreenTest : public PageTest {
 protected:
  std::string Colour(int cpu) {
    return Value(fmt::format("getComputedStyle(document.querySelector('[data-cpu=\"{}\"]'))"
                             ".backgroundColor",
                             cpu))
        .get<std::string>();
  }
  std::string ColourOf(const std::string& pod) {
    return Colour(CpusAtRuntime(running_[pod].container).First());
  }
  Json Names() {
    return Value("[...document.querySelectorAll('.names span')].map((name) => name.textContent)");
  }
};

TEST_F(FirstScreenTest, NamesTheNodeAndTellsTheAgeOfItsData) {
  StartWithPage();
  ASSERT_THAT(browser_->Open(Origin() + "/"), IsOk());
  ASSERT_TRUE(Becomes("document.querySelectorAll('#machine .cpu').length === 128"));
  EXPECT_EQ(Value("location.pathname"), "/page/");
  EXPECT_EQ(Value("document.title"), HostName() + " · cri-resmgr");
  EXPECT_EQ(Text("#node"), HostName());
  EXPECT_TRUE(
      Becomes("/^20[\\d-]+ [\\d:]+ UTC$/.test(document.querySelector('#time').textContent)"));
  EXPECT_TRUE(Becomes("document.querySelector('#age-text').textContent === 'live'"));
  EXPECT_EQ(Text("#verdict-text"), "No problems known");
  ExpectWithinThePage();
}

TEST_F(FirstScreenTest, TellsProblemsFirst) {
  OpenPageOfMany();
  runtime_.Stop();
  ASSERT_TRUE(Becomes("!document.querySelector('#problems').hidden"));
  EXPECT_THAT(Text("#verdict-text"), HasSubstr("1 problem: runtime"));
  EXPECT_THAT(Text("#problems"), HasSubstr("the runtime is not connected"));
  EXPECT_EQ(Value("document.title"), "(1) " + HostName() + " · cri-resmgr");
}

TEST_F(FirstScreenTest, NeighboursHaveOtherColoursWhichTheyKeep) {
  OpenPageOfMany();
  // By row, each pair of cores beside each other, and threads of one core, with different owners.
  const Json alike = Value(R"((() => {
    const ownerOf = (cell) => /exclusive to ([^,]*)/.exec(cell.title)?.[1];
    const colourOf = (cell) => getComputedStyle(cell).backgroundColor;
    const alike = [];
    for (const row of document.querySelectorAll('#machine .row')) {
      const cells = [...row.querySelectorAll('.cpu')];
      cells.forEach((a, i) => cells.slice(i + 1, i + 4).forEach((b) => {
        if (ownerOf(a) && ownerOf(b) && ownerOf(a) !== ownerOf(b) && colourOf(a) === colourOf(b)) alike.push(a.title, b.title);
      }));
    }
    return alike;
  })())");
  EXPECT_EQ(alike, Json::array());
  std::map<std::string, std::string> before;
  for (const auto& [pod, running] : running_) {
    if (pod.starts_with("database")) before[pod] = ColourOf(pod);
  }
  EXPECT_GT(std::set<std::string>({before["database-1"], before["database-2"], before["database-3"],
                                   before["database-4"]})
                .size(),
            2U);
  RunGuaranteed("late", MilliCpu{4000}, kGiB);
  ASSERT_TRUE(Becomes("document.querySelectorAll(\"[class*='cpu own']\").length === 58"));
  for (const auto& [pod, colour] : before)
    EXPECT_EQ(ColourOf(pod), colour) << pod;
  OpenPage(kContainers + 1);
  for (const auto& [pod, colour] : before)
    EXPECT_EQ(ColourOf(pod), colour) << pod << " after the page was loaded again";
}

TEST_F(FirstScreenTest, NamesContainersAboveTheirCpus) {
  OpenPageOfMany();
  const Json names = Names();
  for (const char* const pod : {"database-1", "database-5", "database-12"})
    EXPECT_THAT(names, testing::Contains(pod));
}

TEST_F(FirstScreenTest, ShowsWhatIsUsed) {
  OpenPageOfMany();
  // This machine's own figures, as far as the synthetic machine has such CPUs.
  ASSERT_TRUE(Becomes("document.querySelectorAll('.cpu.measured').length > 0"));
  EXPECT_THAT(Text("#figures"), AllOf(HasSubstr("CPU used"), HasSubstr(" of 128")));
  EXPECT_THAT(Value("document.querySelector('[data-cpu=\"0\"]').title").get<std::string>(),
              HasSubstr("% busy"));
  EXPECT_EQ(Count("#figures .line polyline"), 1);
  ASSERT_THAT(browser_->Click("#busy"), IsOk());
  EXPECT_EQ(Value("document.body.classList.contains('by-use')"), true);
  Press({"b"});
  EXPECT_EQ(Value("document.body.classList.contains('by-use')"), false);
  EXPECT_THAT(Text("#containers thead"), AllOf(HasSubstr("Used of granted"), HasSubstr("Throttled"),
                                               HasSubstr("Pressure"), HasSubstr("Remote")));
  ASSERT_THAT(browser_->Click("th[data-order='Exclusive'] button"), IsOk());
  EXPECT_THAT(Text("#containers tbody tr"), HasSubstr("default/database-5/main"))
      << "the one with most CPUs";
  ExpectWithinThePage();
}

TEST_F(FirstScreenTest, FindsContainersAndCpus) {
  OpenPageOfMany();
  Press({"/", "d", "a", "t", "a", "b", "a", "s", "e", "-", "5"});
  ASSERT_TRUE(Becomes("document.querySelectorAll('#containers tbody tr').length === 1"));
  EXPECT_EQ(CpusOf(".cpu.found"), CpusAtRuntime(running_["database-5"].container));
  Press({Browser::kEscape});
  EXPECT_EQ(Count("#containers tbody tr"), kContainers);
  EXPECT_EQ(Count(".cpu.found"), 0);
  const int cpu = CpusAtRuntime(running_["database-3"].container).First();
  for (const char digit : std::to_string(cpu))
    Press({std::string(1, digit)});
  ASSERT_TRUE(Becomes("document.querySelectorAll('.cpu.found').length === 1"));
  EXPECT_EQ(CpusOf(".cpu.found"), CpuSet{cpu});
  EXPECT_THAT(Text("#containers tbody tr"), HasSubstr("default/database-3/main"));
  Press({Browser::kEnter});
  ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
  EXPECT_EQ(Marked(), CpusAtRuntime(running_["database-3"].container));
}

TEST_F(FirstScreenTest, ChoosingAContainerMovesNothing) {
  OpenPageOfMany();
  ASSERT_TRUE(Becomes("document.querySelectorAll('.cpu.measured').length > 0"));
  const std::string where =
      "[scrollX, scrollY, ...[...document.querySelectorAll('.cpu, main > section')].map((element) "
      "=> element.getBoundingClientRect()).flatMap(({x, y, width, height}) => [x, y, width, "
      "height])]";
  for (const int width : {1440, 390}) {
    ASSERT_THAT(browser_->Resize(width, 844), IsOk());
    const CpuSet cpus = CpusAtRuntime(running_["database-5"].container);
    ASSERT_THAT(browser_->Run("window.scrollTo(0, 100)"), IsOk());
    const Json before = Value(where);
    ASSERT_THAT(browser_->Run(fmt::format("document.querySelector('[data-cpu=\"{}\"]').click()",
                                          cpus.First())),
                IsOk());
    ASSERT_TRUE(Becomes("document.querySelector('#details-body dl')"));
    EXPECT_EQ(Marked(), cpus);
    EXPECT_EQ(Value(where), before) << width;
    Press({Browser::kEscape});
    EXPECT_TRUE(Becomes("document.querySelector('#details').hidden"));
  }
}

TEST_F(FirstScreenTest, MakesAPicture) {
  OpenPageOfMany();
  const auto picture = browser_->Run(
      "return import('/page/picture.js').then((module) => module.pictureOf("
      "[document.querySelector('#machine-section')])).then((blob) => [blob.type, blob.size])");
  ASSERT_THAT(picture, IsOk());
  EXPECT_EQ((*picture)[0], "image/png");
  EXPECT_GT((*picture)[1].get<int>(), 20'000);
  ASSERT_THAT(browser_->Click("#copy"), IsOk());
  EXPECT_TRUE(Becomes("['Copied', 'Saved'].includes(document.querySelector('#copy').textContent)"));
  ExpectWithinThePage();
}

TEST_F(FirstScreenTest, BalloonsHaveNamesAndColours) {
  StartWithPolicy({"-config", RESMGR_SOURCE_DIR "/sample-configs/balloons.yaml"}, kMachine);
  RunGuaranteed("one", MilliCpu{2000}, kGiB);
  OpenPage(1);
  ASSERT_TRUE(Becomes("document.querySelectorAll('.cpu.balloon').length >= 2"));
  EXPECT_THAT(Names(), testing::Contains("default[0]"));
  EXPECT_THAT(Text("#figures"), HasSubstr("Balloons"));
  EXPECT_THAT(Text("#uses"), HasSubstr("reserved"));
  EXPECT_NE(ColourOf("one"), "rgba(0, 0, 0, 0)");
  ASSERT_THAT(browser_->Click(".cpu.balloon"), IsOk());
  EXPECT_EQ(Value("document.querySelector('#filter').value"), "default[0]");
  EXPECT_EQ(CpusOf(".cpu.found"), CpusAtRuntime(running_["one"].container));
}

// Nothing is wider than the window. Takes the pictures of docs/page.md.
TEST_F(FirstScreenTest, FitsScreensOfAllSizes) {
  StartWithPage("synthetic:package:2 numa:4(memory=206158430208) l3:4 core:8 pu:2");
  RunShop();
  OpenPage(kShop);
  ASSERT_TRUE(Becomes("document.querySelector('#figures .line polyline')"));
  for (const std::string scheme : {"light", "dark"}) {
    ASSERT_THAT(browser_->PreferColours(scheme), IsOk());
    for (const auto& [width, height] : {std::pair(1440, 900), std::pair(390, 844)}) {
      ASSERT_THAT(browser_->Resize(width, height), IsOk());
      EXPECT_LE(Value("document.documentElement.scrollWidth").get<int>(), width);
      const bool shown_in_docs = (scheme == "dark") == (width == 1440);
      if (shown_in_docs) TakeScreenshot(fmt::format("page-512-{}-{}", scheme, width));
    }
  }
}

}  // namespace
}  // namespace resmgr::test
