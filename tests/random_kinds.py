"""Kinds of networks, as a table tells them apart, and the features by which a network is one."""

from collections.abc import Mapping

COMMON: Mapping[str, tuple[str, ...]] = {
    "convolutions beside the first": (
        *("conv", "transposed_conv", "OfRows", "own_conv", "convolves_by_function"),
        *("resize", "WithoutBatch", "Rows"),
    ),
    "branches": ("Adds", "Concatenates", "Gates", "Residual", "SqueezeAndExcite"),
    "norms and activations": ("norm", "activation", "NormAndActivation"),
    "writes in place": (
        *("relu_in_place", "adds_in_place", "multiplies_in_place", "writes_a_slice"),
        *("writes_through_a_view", "writes_by_mask", "writes_into_out", "writes_many_at_once"),
        *("swaps_its_memory", "writes_its_input"),
    ),
    "writes past the version counters": (
        *("clamps_data", "sets_data", "writes_through_numpy", "writes_through_dlpack"),
        *("writes_through_storage", "writes_in_another_thread", "writes_in_a_script"),
        "writes_in_a_function_of_autograd",
    ),
    "state in buffers and attributes": (
        *("counts_in_a_buffer", "replaces_a_buffer", "counts_in_an_attribute", "grows_a_list"),
        *("keeps_a_tensor", "caches_by_shape", "adds_an_attribute", "normalises_in_training"),
        *("moves_averages_by_hand", "scales_its_own_kernel", "clips_its_own_kernel"),
        *("SwapsItsLayers", "TrainsWhileItRuns"),
    ),
    "weights made anew": ("WeightNorm", "SpectralNorm", "ReplacedForward"),
    "tied, called several times": ("TiedWeights", "TiedModules", "CalledTwice"),
    "ways that depend on values": (
        *("ByValue", "LoopByValue", "ByShape", "Tries", "chooses_by_mask"),
    ),
    "checkpoints and inference mode": (*("Checkpointed", "InInference", "leaves_gradients_out"),),
    "lambdas, methods, lists of layers": (
        *("HoldsLambdas", "HoldsAMethod", "HiddenLayers", "ByDictionary"),
    ),
    "outputs of all kinds": (*("PartsOfAnOutput", "Spectrum", "ViewOfAConv", "Answers"),),
    "double and half precision": ("float64", "bfloat16"),
    "random on purpose": ("Noise",),
    "used before, or loaded anew": ("used", "loaded"),
    "wrapped without a word on its input": ("guessed",),
}
"""Those that most random networks are several of."""

RARE: Mapping[str, tuple[str, ...]] = {
    "padding": ("Pads", "pads_by_parity"),
    "hidden state": (
        *("CountsInSlots", "HoldsAGenerator", "NormalisesPastNames", "TracksItsInput"),
        *("CountsInACell", "CountingWeights"),
    ),
    "views of one memory": ("BufferAndItsView", "WeightAndItsView", "ViewInAnAttribute"),
    "caches outside": ("CachesInItsFile", "CachesOnItsClass", "CachesByLru"),
    "weak references, cached look-ups": (
        *("CallsItsParent", "LooksUpWeakly", "KeepsByLayer", "LooksUpOnce"),
    ),
    "hooks of the network's own": (
        *("ReadsItsHook", "ReadsAClosure", "ScalesByAHook", "ShiftsByAPreHook"),
        *("HooksByMethods", "EqualisedRates"),
    ),
    "batch-wide operations": (
        *("scales_by_the_maximum", "centres_on_the_batch", "compares_with_the_first"),
        *("adds_the_mean", "Flips"),
    ),
    "axes in any order": (
        *("LengthFirst", "AddsPlaces", "ChannelsLast", "ChannelsAsImages", "OfSteps"),
        *("turns", "swaps_halves", "reshapes", "channels_last"),
    ),
    "tokens and windows": (
        *("Attention", "Tokens", "LastAttends", "Windowed", "OddOrders", "UsedInTwoLayouts"),
    ),
    "nested tensors": ("PaddedEncoder",),
    "recurrence": ("Recurrent", "RecurrentPlaces", "ReadsColumns", "RecurrentCell"),
    "graph modules": ("symbolic_trace", "feature_extractor", "InsideAGraph"),
    "equal networks": ("EqualToOthers",),
    "mixed precision": ("ShiftsInHalf", "JudgesInHalf", "CastsByItself"),
    "answers of all kinds": (
        *("Softmaxes", "OneLogit", "ManyLabels", "OneNumber", "Embeds", "NamesItsParts"),
        *("OneCell", "MapsOfClasses", "Detects"),
    ),
}
"""Those of which a random network is made one."""

KINDS: Mapping[str, tuple[str, ...]] = {**COMMON, **RARE}

KIND_OF = {feature: kind for kind, features in KINDS.items() for feature in features}

REMEMBERS = frozenset(
    {
        *("counts_in_an_attribute", "grows_a_list", "keeps_a_tensor", "scales_its_own_kernel"),
        *("clips_its_own_kernel", "SwapsItsLayers", "HiddenLayers", "CountsInSlots"),
        *("HoldsAGenerator", "CountsInACell", "CountingWeights", "WeightAndItsView", "Noise"),
    }
)
"""Features by which the next pass may compute something else, whatever is put back."""
