"""The classes in the state of a fitted encoder or estimator, for libraries that read a state class by class."""

# Names of classes by module; the modules themselves need not be imported.
STATE_CLASSES = {
    "cpu_fallback.types": "Layout Window",
    "gpu_encode.encoders.catboost": "CatBoostEncoder",
    "gpu_encode.encoders.codes": "CodesModel",
    "gpu_encode.encoders.count": "CountEncoder",
    "gpu_encode.encoders.gradient": "GradientEncoder",
    "gpu_encode.encoders.hashing": "HashedModel HashingEncoder",
    "gpu_encode.encoders.impact": "ImpactEncoder",
    "gpu_encode.encoders.one_hot.encoder": "OneHotEncoder",
    "gpu_encode.encoders.one_hot.rows": "OneHotModel",
    "gpu_encode.encoders.ordinal.encoder": "OrdinalEncoder",
    "gpu_encode.encoders.statistic": "StatisticEncoder",
    "gpu_encode.encoders.target": "TargetEncoder",
    "gpu_encode.encoders.weight_of_evidence": "WeightOfEvidenceEncoder",
    "gpu_encode.fitting.columns": "Selection",
    "gpu_encode.fitting.model": "Model TargetInfo",
    "gpu_encode.formulas.catboost": "CountRatios TargetRatios",
    "gpu_encode.formulas.counts": "Counts",
    "gpu_encode.formulas.encoding_rule": "EncodingRule",
    "gpu_encode.formulas.evidence": "Evidence",
    "gpu_encode.formulas.glmm.smoothing": "GLMM",
    "gpu_encode.formulas.gradients": "GradientRatios",
    "gpu_encode.formulas.hashes": "Hashes",
    "gpu_encode.formulas.impact": "Impact",
    "gpu_encode.formulas.infrequent": "Infrequent",
    "gpu_encode.formulas.mergeable": "MergeableStatistic",
    "gpu_encode.formulas.one_hot": "OneHot",
    "gpu_encode.formulas.ranks": "Ranks",
    "gpu_encode.formulas.smoothing": "EmpiricalBayes JamesStein MEstimate NoSmoothing PartialPooling Sigmoid",
    "gpu_encode.formulas.summaries": "Summaries",
    "gpu_encode.methods.cluster.encoder": "ClusterEncoder Clusters",
    "gpu_encode.methods.factors.cooccurrence": "CooccurrenceEncoder Neighbours",
    "gpu_encode.methods.factors.spectral": "SpectralEncoder Spectrum",
    "gpu_encode.methods.factors.tensor": "FactorizationEncoder Factors",
    "gpu_encode.methods.number_filler": "NumberFiller",
    "gpu_encode.methods.proximity.encoder": "ProximityEncoder",
    "gpu_encode.methods.proximity.estimators": "ProximityClassifier ProximityRegressor",
    "gpu_encode.methods.proximity.learned": "LearnedVotes",
    "gpu_encode.methods.votes.blends": "ConvexBlend",
    "gpu_encode.methods.votes.classifier": "VoteClassifier",
    "gpu_encode.methods.votes.regressor": "VoteRegressor",
    "gpu_encode.methods.votes.squared_error_blend": "SquaredErrorBlend",
    "gpu_encode.schemes.folds": "FoldNumbers Greedy GroupKFold Holdout KFold TimeFolds",
    "gpu_encode.schemes.orders": "LeaveOneOut Ordered",
    "gpu_encode.study.tuning.estimator": "TunedEncoderCV",
    "gpu_encode.study.tuning.results": "Score Tuned",
    "gpu_encode.sums.category_sums": "CategorySums SumSpec",
    "gpu_encode.sums.distributions": "Distribution",
    "gpu_encode.sums.pairs": "PairSums",
    "gpu_encode.tables.categories.hierarchy": "Bits Parts Prefixes",
    "gpu_encode.tables.categories.keys": "CategoryIndex KeySpec Tuples",
    "gpu_encode.tables.categories.values": "Values",
    "gpu_encode.tables.categories.vocabulary": "Vocabulary",
}


def skops_types() -> list[str]:
    """Name the classes of this library that a file of skops may hold, as skops and MLflow ask for them.

    Files of skops are read class by class, and no class is made that was not named as trusted.  Trust these names in
    files that you, or people whom you trust, have written: skops does not check the numbers in a file as `load` does.

    Returns
    -------
    list of str
        Full names of classes, and `decimal.Decimal`, which categories may be.  Classes of other libraries in a pipeline
        and functions of your own are not among them.

    See Also
    --------
    load : Reads models that an encoder's own method `save` wrote, and checks every number.

    Examples
    --------
    >>> import gpu_encode
    >>> types = gpu_encode.skops_types()
    >>> "gpu_encode.encoders.target.TargetEncoder" in types
    True

    ``skops.io.load(path, trusted=types)`` and ``mlflow.sklearn.save_model(model, path, skops_trusted_types=types)``
    take the list.
    """
    return [
        "decimal.Decimal",
        *(f"{module}.{name}" for module, names in STATE_CLASSES.items() for name in names.split()),
    ]
