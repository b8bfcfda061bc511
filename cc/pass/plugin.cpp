// SPDX-License-Identifier: MIT
//
// The plugin: where its two halves stand in LLVM's pipeline.
//
// The first half marks the front end's code before any optimisation. The second half pays after
// inlining and simplification, and before the vectoriser, which needs plain counted loops.
#include "cc/pass/names.h"
#include "cc/pass/pay.h"
#include "cc/pass/steps.h"
#include "cc/pass/versions.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/IndVarSimplify.h>
#include <llvm/Transforms/Scalar/LoopDeletion.h>
#include <llvm/Transforms/Scalar/LoopIdiomRecognize.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/LoopRotation.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>
#include <llvm/Transforms/Utils/LCSSA.h>
#include <llvm/Transforms/Utils/Local.h>
#include <llvm/Transforms/Utils/LoopSimplify.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

using namespace llvm;

namespace janus
{

static bool isSupported(const Module &module)
{
    StringRef triple = module.getTargetTriple();
    return startsWith(triple, "x86_64") || startsWith(triple, "aarch64-");
}

static const char *const noteName = "janusrt.note";

// A note in the object says that the pass made it, and whether it was untrusted code.
static void putNote(Module &module, const Options &options)
{
    const uint8_t bytes[28] = {8,
                               0,
                               0,
                               0,
                               8,
                               0,
                               0,
                               0,
                               1,
                               0,
                               0,
                               0, // sizes, type 1
                               'j',
                               'a',
                               'n',
                               'u',
                               's',
                               'r',
                               't',
                               0,
                               1,
                               0,
                               0,
                               0, // version
                               (uint8_t)(options.untrusted ? 1 : 0)};
    Constant     *data = ConstantDataArray::get(module.getContext(), ArrayRef<uint8_t>(bytes));
    auto *note = new GlobalVariable(module, data->getType(), true, GlobalValue::PrivateLinkage,
                                    data, noteName);
    note->setSection(".note.janusrt");
    note->setAlignment(Align(4));
    appendToCompilerUsed(module, {note});
}

struct MarkPass : PassInfoMixin<MarkPass> {
    explicit MarkPass(const Options &forOptions) : options(forOptions) {}

    PreservedAnalyses run(Module &module, ModuleAnalysisManager &analyses)
    {
        if (!options.wrong.empty())
            module.getContext().emitError("JANUSRT_OPS: the pass does not know the word \"" +
                                          options.wrong + "\"");
        if (!isSupported(module))
            module.getContext().emitError(
                "janusrt cc counts code for x86_64 and aarch64 only, not for " +
                module.getTargetTriple());
        if (options.wrap && !hasWrappers())
            module.getContext().emitError("this plugin was built without cc/support/wrapped.def");
        if (module.getNamedGlobal(noteName))
            module.getContext().emitError(module.getSourceFileName() +
                                          " has been counted already: compile its source");
        checkTrust(module, analyses, options);
        reportModule(module, analyses, options);
        markModule(module, analyses, options);
        putNote(module, options);
        if (options.verify && verifyModule(module, &errs()))
            report_fatal_error("janusrt cc: the marks broke the module");
        return PreservedAnalyses::none();
    }

    static bool isRequired() { return true; }

    Options options;
};

struct PayPass : PassInfoMixin<PayPass> {
    explicit PayPass(const Options &forOptions) : options(forOptions) {}

    PreservedAnalyses run(Function &function, FunctionAnalysisManager &analyses)
    {
        removeUnreachableBlocks(function);
        if (!hasMarks(function)) return PreservedAnalyses::none();
        auto &library = analyses.getResult<TargetLibraryAnalysis>(function);
        Facts facts;
        if (options.naive) {
            payAtOnce(function);
        } else {
            if (options.delay) sinkMarks(function, library);
            verify(function, "sink");
            payTrips(function, analyses, options, facts);
            verify(function, "fold and strip");
            if (options.hoist) hoistMarks(function);
            verify(function, "hoist");
            placePayments(function, library, options, facts);
        }
        verify(function, "payment");
        reportFunction(function, options, facts);
        return PreservedAnalyses::none();
    }

    static bool isRequired() { return true; }

    Options options;

  private:
    static bool hasMarks(Function &function)
    {
        for (BasicBlock &block : function)
            for (Instruction &instruction : block)
                if (asMark(instruction)) return true;
        return false;
    }

    void payAtOnce(Function &function)
    {
        SmallVector<StoreInst *, 32> marks;
        for (BasicBlock &block : function)
            for (Instruction &instruction : block)
                if (StoreInst *mark = asMark(instruction)) marks.push_back(mark);
        Payer payer(*function.getParent(), options);
        for (StoreInst *mark : marks) {
            payer.pay(mark, costOf(mark), nullptr);
            mark->eraseFromParent();
        }
    }

    void verify(Function &function, const char *step)
    {
        if (!options.verify || !verifyFunction(function, &errs())) return;
        errs() << "in function " << function.getName() << "\n";
        report_fatal_error(Twine("janusrt cc: broken code after the step: ") + step);
    }
};

// The payments, and once more what the marks had held back.
static void addPayments(FunctionPassManager &passes, const Options &options, bool optimise)
{
    if (optimise) {
        passes.addPass(LoopSimplifyPass());
        passes.addPass(LCSSAPass());
        LoopPassManager rotate;
        rotate.addPass(LoopRotatePass());
        passes.addPass(createFunctionToLoopPassAdaptor(std::move(rotate)));
    }
    passes.addPass(PayPass(options));
    if (!optimise) return;
    passes.addPass(EarlyCSEPass(true));
    passes.addPass(InstCombinePass());
    passes.addPass(SimplifyCFGPass());
    LoopPassManager hoist;
    hoist.addPass(licmPass());
    passes.addPass(createFunctionToLoopPassAdaptor(std::move(hoist), true, false));
    LoopPassManager simplify;
    simplify.addPass(LoopIdiomRecognizePass());
    simplify.addPass(IndVarSimplifyPass());
    simplify.addPass(LoopDeletionPass());
    passes.addPass(createFunctionToLoopPassAdaptor(std::move(simplify)));
}

static void registerSteps(PassBuilder &builder)
{
    Options options = readOptions();
    builder.registerPipelineStartEPCallback(
        [options](ModulePassManager &passes, OptimizationLevel) {
            passes.addPass(MarkPass(options));
        });
    builder.registerVectorizerStartEPCallback(
        [options](FunctionPassManager &passes, OptimizationLevel level) {
            addPayments(passes, options, level != OptimizationLevel::O0);
        });
}

} // namespace janus

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo()
{
    return {LLVM_PLUGIN_API_VERSION, "janusrt-ops", LLVM_VERSION_STRING, janus::registerSteps};
}
